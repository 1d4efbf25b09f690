/*
 * rule_arith.h: the rules of rules.h on T, a float or a vector of floats; included by rule_inline.h for each, with T, its name for a
 * function (NAME), and the two functions that C's operators lack: SQRT and MAX.
 *
 * s: the state fields, in place. x is looked at where `decays` alone. What a step adds to the parameter is returned.
 */

/* The gradient with coupled decay. */
MWK_INLINE T NAME(decayed)(const struct mw_coef *c, bool decays, T x, T g)
{
	T d = c->scale * g;
	return decays ? d + c->couple * x : d;
}

/* A step d without what decoupled decay takes off beside it. */
MWK_INLINE T NAME(less_decay)(const struct mw_coef *c, bool decays, T x, T d)
{
	return decays ? -(c->shrink * x) - d : -d;
}

#define STEP(name) MWK_INLINE T NAME(name)(const struct mw_coef *c, T *s, bool decays, T x, T g)

STEP(sgd_plain)
{
	(void)s;
	return NAME(less_decay)(c, decays, x, c->rate * NAME(decayed)(c, decays, x, g));
}

STEP(sgd_heavy_ball)
{
	s[0] = c->momentum * s[0] + NAME(decayed)(c, decays, x, g);
	return NAME(less_decay)(c, decays, x, c->rate * s[0]);
}

STEP(sgd_nesterov)
{
	T d = NAME(decayed)(c, decays, x, g);
	s[0] = c->momentum * s[0] + d;
	return NAME(less_decay)(c, decays, x, c->rate * (d + c->momentum * s[0]));
}

STEP(adam)
{
	T d = NAME(decayed)(c, decays, x, g);
	s[0] = c->keep1 * s[0] + c->take1 * d;
	s[1] = c->keep2 * s[1] + c->take2 * (d * d);
	return NAME(less_decay)(c, decays, x, c->size * s[0] / (SQRT(s[1]) * c->root_scale + c->eps));
}

STEP(amsgrad)
{
	T d = NAME(decayed)(c, decays, x, g);
	s[0] = c->keep1 * s[0] + c->take1 * d;
	s[1] = c->keep2 * s[1] + c->take2 * (d * d);
	s[2] = MAX(s[1], s[2]);
	return NAME(less_decay)(c, decays, x, c->size * s[0] / (SQRT(s[2]) * c->root_scale + c->eps));
}

STEP(rmsprop)
{
	T d = NAME(decayed)(c, decays, x, g);
	s[0] = c->keep2 * s[0] + c->take2 * (d * d);
	return NAME(less_decay)(c, decays, x, c->rate * d / (SQRT(s[0]) + c->eps));
}

STEP(rmsprop_momentum)
{
	T d = NAME(decayed)(c, decays, x, g);
	s[0] = c->keep2 * s[0] + c->take2 * (d * d);
	s[1] = c->momentum * s[1] + d / (SQRT(s[0]) + c->eps);
	return NAME(less_decay)(c, decays, x, c->rate * s[1]);
}

STEP(adagrad)
{
	T d = NAME(decayed)(c, decays, x, g);
	s[0] = s[0] + d * d;
	return NAME(less_decay)(c, decays, x, c->rate * d / (SQRT(s[0]) + c->eps));
}

#undef STEP
#undef T
#undef NAME
#undef SQRT
#undef MAX
