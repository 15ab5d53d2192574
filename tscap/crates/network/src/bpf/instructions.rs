//! Instructions of eBPF as the kernel takes them.

use aya_obj::generated::bpf_insn;
use tscap_filter::ebpf::Insn;

/// As the kernel takes them.
pub fn for_kernel(code: &[Insn]) -> Vec<bpf_insn> {
    let instruction = |it: &Insn| bpf_insn {
        code: it.code,
        _bitfield_align_1: [],
        _bitfield_1: bpf_insn::new_bitfield_1(it.dst, it.src),
        off: it.off,
        imm: it.imm,
    };
    code.iter().map(instruction).collect()
}

/// As an object file has them.
pub fn of_object(code: &[bpf_insn]) -> Vec<Insn> {
    let instruction = |it: &bpf_insn| Insn {
        code: it.code,
        dst: it.dst_reg(),
        src: it.src_reg(),
        off: it.off,
        imm: it.imm,
    };
    code.iter().map(instruction).collect()
}

#[cfg(test)]
mod tests {
    use aya_obj::generated;
    use tscap_filter::ebpf;

    use super::*;

    #[test]
    fn the_codes_are_those_of_the_kernels_headers() {
        macro_rules! same {
            ($($name:ident)+) => { $(assert_eq!(ebpf::$name, generated::$name);)+ };
        }
        same! {
            BPF_LDX BPF_ST BPF_STX BPF_ALU BPF_JMP BPF_JMP32 BPF_ALU64 BPF_K BPF_X BPF_W BPF_H BPF_B BPF_DW BPF_MEM BPF_ADD BPF_SUB BPF_MUL BPF_DIV BPF_OR BPF_AND BPF_LSH BPF_RSH BPF_NEG BPF_MOD BPF_XOR BPF_MOV BPF_ARSH BPF_END BPF_JA BPF_JEQ BPF_JGT BPF_JGE BPF_JSET BPF_JNE BPF_CALL BPF_EXIT BPF_JLT BPF_JLE
        }
    }

    #[test]
    fn an_instruction_is_the_same_there_and_back() {
        let code = [Insn {
            code: 0xb7,
            dst: 10,
            src: 3,
            off: -2,
            imm: -7,
        }];
        assert_eq!(of_object(&for_kernel(&code)), code);
    }
}
