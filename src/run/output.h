/* output.h: results in the forms that commands offer by --format. */
#ifndef MW_RUN_OUTPUT_H
#define MW_RUN_OUTPUT_H

#include <stdio.h>
#include <jansson.h>

/* In the order of the choices "text|json|csv"; for "text|json" too. */
enum mw_output { MW_OUT_TEXT, MW_OUT_JSON, MW_OUT_CSV };

/* Pretty-printed with a final newline; numbers with 10 significant digits. Takes over the reference to root.
 */
void mw_output_json(FILE *f, json_t *root);

/* One CSV field (RFC 4180: quoted where it must be); NULL is an empty field. */
void mw_output_csv(FILE *f, const char *text);

#endif
