/* order.h: inside of src/topo: the order in which workers take PUs. */
#ifndef MW_TOPO_ORDER_H
#define MW_TOPO_ORDER_H

#include "topo/machine.h"

/* PUs in the order workers get them: indices into machine.pu. */
struct mw_pu_order {
	uint32_t *pu;
	uint32_t n;
};

/* For bind list, list is the text after "list:". no_smt leaves out all but the first PU of each core. */
int mw_pu_order_init(struct mw_pu_order *o, const struct mw_machine *m, enum mw_bind bind, const char *list,
	bool no_smt, struct mw_err *err);
void mw_pu_order_fini(struct mw_pu_order *o);

#endif
