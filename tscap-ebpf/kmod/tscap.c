// SPDX-License-Identifier: GPL-2.0
/*
 * Two kfuncs with which XDP programs read the raw counter of their CPU: on x86-64
 * the TSC, on arm64 the virtual counter.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/module.h>

#if defined(CONFIG_X86_64)
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/tsc.h>
#elif defined(CONFIG_ARM64)
#include <asm/arch_timer.h>
#else
#error "no counter known for this architecture"
#endif

/* Since Linux 6.3. */
#ifndef __bpf_kfunc
#define __bpf_kfunc __used noinline
#endif
/* Since Linux 6.9; BTF_SET8 before. */
#ifndef BTF_KFUNCS_START
#define BTF_KFUNCS_START BTF_SET8_START
#define BTF_KFUNCS_END BTF_SET8_END
#endif

/* Their callers know them by BTF, not by a header. */
__diag_push();
__diag_ignore_all("-Wmissing-prototypes", "kfuncs");

/* The counter, as soon as the CPU likes: maybe before earlier instructions. */
__bpf_kfunc u64 tscap_rdtsc(void)
{
#ifdef CONFIG_X86_64
	return rdtsc();
#else
	return read_sysreg(cntvct_el0);
#endif
}

/* The counter after every earlier instruction. */
__bpf_kfunc u64 tscap_rdtsc_ordered(void)
{
#ifdef CONFIG_X86_64
	return rdtsc_ordered();
#else
	return __arch_counter_get_cntvct();
#endif
}

__diag_pop();

/* Not KF_FASTCALL: RDTSC writes EDX, which such a function must leave alone. */
BTF_KFUNCS_START(tscap_kfuncs)
BTF_ID_FLAGS(func, tscap_rdtsc)
BTF_ID_FLAGS(func, tscap_rdtsc_ordered)
BTF_KFUNCS_END(tscap_kfuncs)

static const struct btf_kfunc_id_set tscap_kfunc_set = {
	.owner = THIS_MODULE,
	.set = &tscap_kfuncs,
};

/* XDP, tcx and clsact, and programs at functions and tracepoints. */
static const enum bpf_prog_type tscap_program_types[] = {
	BPF_PROG_TYPE_XDP,
	BPF_PROG_TYPE_SCHED_CLS,
	BPF_PROG_TYPE_TRACING,
};

static int __init tscap_init(void)
{
	int error = 0;
	size_t i;

#ifdef CONFIG_X86_64
	if (!boot_cpu_has(X86_FEATURE_CONSTANT_TSC)) {
		pr_err("tscap: the TSC of this CPU has no constant rate\n");
		return -ENODEV;
	}
#endif
	for (i = 0; i < ARRAY_SIZE(tscap_program_types) && !error; i++)
		error = register_btf_kfunc_id_set(tscap_program_types[i],
						  &tscap_kfunc_set);
	return error;
}
module_init(tscap_init);

/* Programs that call a kfunc hold the module: it can't go before them. */
static void __exit tscap_exit(void)
{
}
module_exit(tscap_exit);

MODULE_DESCRIPTION("kfuncs that read the CPU's raw counter, for tscap");
MODULE_LICENSE("GPL");
