/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The entry points: they check the request and call the functions of its datatype. Called by the
 * engine on any thread; stateless.
 */
#include "atomics.h"
#include "cell.h"

static_assert(ATOMICS_DATATYPE_CNT == 20 && ATOMICS_OP_CNT == 20, "values of fi_domain.h");

static inline const struct atomics_type *type_of(enum fi_datatype datatype)
{
	const struct atomics_type *type;

	if ((unsigned)datatype >= ATOMICS_DATATYPE_CNT)
		return NULL;
	type = &atomics_integer_types[datatype];
	return likely(type->size) ? type : atomics_float_type(datatype);
}

#define OPS_COMPARE ((2u << FI_MSWAP) - (1u << FI_CSWAP))

static const uint32_t kind_ops[] = {
	[ATOMICS_BASE] = ATOMICS_OPS_ALL & ~OPS_COMPARE & ~(1u << FI_ATOMIC_READ),
	[ATOMICS_FETCH] = ATOMICS_OPS_ALL & ~OPS_COMPARE,
	[ATOMICS_COMPARE] = OPS_COMPARE,
};

static inline bool type_has(const struct atomics_type *type, enum atomics_kind kind,
			    enum fi_op op)
{
	return likely(type != NULL) && (unsigned)op < ATOMICS_OP_CNT &&
	       (unsigned)kind <= ATOMICS_COMPARE && (type->ops & kind_ops[kind]) >> op & 1;
}

static inline bool type_fits(const struct atomics_type *type, const void *target)
{
	return type && (uintptr_t)target % type->align == 0;
}

size_t atomics_size(enum fi_datatype datatype)
{
	const struct atomics_type *type = type_of(datatype);

	return type ? type->size : 0;
}

bool atomics_valid(enum atomics_kind kind, enum fi_datatype datatype, enum fi_op op)
{
	return type_has(type_of(datatype), kind, op);
}

size_t atomics_element(enum atomics_kind kind, enum fi_datatype datatype, enum fi_op op)
{
	const struct atomics_type *type = type_of(datatype);

	return likely(type_has(type, kind, op)) ? type->size : 0;
}

bool atomics_aligned(const void *target, enum fi_datatype datatype)
{
	return type_fits(type_of(datatype), target);
}

bool atomics_lock_free(const void *target, enum fi_datatype datatype)
{
	const struct atomics_type *type = type_of(datatype);

	return type_fits(type, target) && cell_is_lock_free(type->size, target);
}

int atomics_apply(const struct atomics_update *u)
{
	const struct atomics_type *type = type_of(u->datatype);

	if (!type_has(type, u->kind, u->op))
		return -FI_EOPNOTSUPP;
	if (!type_fits(type, u->target))
		return -FI_EINVAL;
	type->apply(type, u);
	return 0;
}

int atomics_combine(const struct atomics_update *u)
{
	const struct atomics_type *type = type_of(u->datatype);

	if (!type_has(type, u->kind, u->op))
		return -FI_EOPNOTSUPP;
	type->combine(type, u);
	return 0;
}
