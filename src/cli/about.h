/* about.h: the program's own help and manual page. */
#ifndef MW_CLI_ABOUT_H
#define MW_CLI_ABOUT_H

#include <stdio.h>

void cli_help(FILE *f); /* mixwild --help */
void cli_man(FILE *f);  /* mixwild(1) as roff */

#endif
