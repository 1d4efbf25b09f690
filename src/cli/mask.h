/* mask.h: see mask.c. */
#ifndef MW_CLI_MASK_H
#define MW_CLI_MASK_H

/* Give the main thread back what it was started with. */
void cli_restore_mask(void);

#endif
