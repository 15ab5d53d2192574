//! One of the two copies of a program.

use crate::ebpf::{
    BPF_ADD, BPF_AND, BPF_DIV, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JLE, BPF_JLT, BPF_JNE, BPF_JSET,
    BPF_LSH, BPF_MOD, BPF_MUL, BPF_NEG, BPF_OR, BPF_RSH, BPF_SUB, BPF_XOR,
};

use super::emitter::{A, Body, CONTEXT, DATA, DATA_END, Emitter, HEADER_ENDS, Loads, X};
use super::load::load_of;
use super::place::{Place, place};
use super::rows::entries;
use super::{Assembler, Label, Register, Source, Width};
use crate::ancillary::Ancillary;
use crate::classic::{Alu, Operand, Operation, Test};
use crate::flow::Target;

impl Body<'_> {
    /// Appends this copy. r1 is the context.
    pub fn emit(&self, code: &mut Assembler, loads: Loads) {
        let mut emitter = Emitter {
            body: self,
            loads,
            labels: self.steps.iter().map(|_| code.label()).collect(),
            known: vec![None; self.steps.len()],
            entries: entries(self.steps),
            reached: HEADER_ENDS.map(|header| self.reached(header)),
            code,
        };
        emitter.begin();
        for at in 0..self.steps.len() {
            // What is only reached from behind a load that can't be made is left out.
            if let Some(known) = emitter.known[at] {
                emitter.step(at, known);
            }
        }
    }

    /// How far loads reach into the headers that end at `header`.
    fn reached(&self, header: u32) -> u32 {
        let loads = self.steps.iter().filter_map(load_of);
        let ends =
            loads
                .filter(|load| !load.indirect)
                .filter_map(|load| match place(load, self.access) {
                    Place::Frame(from) => Some(from.saturating_add(load.size.bytes())),
                    Place::Tag(_) | Place::Mixed => None,
                });
        ends.filter(|end| *end <= header).max().unwrap_or(0)
    }
}

impl Emitter<'_> {
    /// What the first step needs.
    fn begin(&mut self) {
        let (access, scratch) = (self.body.access, self.body.scratch);
        let loads_bytes = self.body.steps.iter().any(|step| load_of(step).is_some());
        match (self.loads, access.linear) {
            (Loads::Direct, Some([start, end])) if loads_bytes => {
                self.code.load(Width::Word, DATA, CONTEXT, start);
                self.code.load(Width::Word, DATA_END, CONTEXT, end);
            }
            (Loads::Direct, _) => {}
            (Loads::ByHelper, _) => {
                self.code
                    .store(Width::Double, Register::Frame, scratch.context(), CONTEXT);
            }
        }
        let live = self.body.steps[0].live;
        for (is_live, register) in [(live.a(), A), (live.x(), X)] {
            if is_live {
                self.code.mov32(register, Source::Constant(0));
            }
        }
        for word in live.words() {
            self.code.store_zero(Register::Frame, scratch.word(word));
        }
        self.known[0] = Some(0);
    }

    fn step(&mut self, at: usize, mut known: u32) {
        let step = &self.body.steps[at];
        let it = &step.instruction;
        self.code.bind(self.labels[at]);
        if let Some(load) = load_of(step) {
            let done = match self.loads {
                Loads::Direct => self.load_direct(load, &mut known),
                Loads::ByHelper => self.load_by_helper(load, step),
            };
            if !done {
                return;
            }
        } else {
            match it.operation() {
                Operation::Branch(..) if self.row(at, known) => return,
                Operation::Branch(test, operand) => return self.branch(at, test, operand, known),
                Operation::ReturnConstant => {
                    self.code.mov32(A, Source::Constant(it.k));
                    return self.code.goto(self.body.end);
                }
                Operation::ReturnA => return self.code.goto(self.body.end),
                operation => self.compute(operation, it.k),
            }
        }
        self.go(at, step.next, known);
    }

    /// Everything that neither loads bytes of the frame nor tests nor returns.
    fn compute(&mut self, operation: Operation, k: u32) {
        let scratch = self.body.scratch;
        let frame = Register::Frame;
        let code = &mut *self.code;
        match operation {
            Operation::LoadLength => code.load(Width::Word, A, frame, scratch.length()),
            Operation::LoadXLength => code.load(Width::Word, X, frame, scratch.length()),
            Operation::LoadConstant => code.mov32(A, Source::Constant(k)),
            Operation::LoadXConstant => code.mov32(X, Source::Constant(k)),
            Operation::LoadScratch => code.load(Width::Word, A, frame, scratch.word(k)),
            Operation::LoadXScratch => code.load(Width::Word, X, frame, scratch.word(k)),
            Operation::Store => code.store(Width::Word, frame, scratch.word(k), A),
            Operation::StoreX => code.store(Width::Word, frame, scratch.word(k), X),
            Operation::ToX => code.mov32(X, Source::Register(A)),
            Operation::ToA => code.mov32(A, Source::Register(X)),
            Operation::Negate => code.alu32(BPF_NEG, A, Source::Constant(0)),
            Operation::Alu(alu, operand) => self.alu(alu, operand, k),
            Operation::LoadAbsolute(_) => self.ancillary(k),
            Operation::LoadIndirect(_)
            | Operation::LoadXHeaderLength
            | Operation::Branch(..)
            | Operation::ReturnConstant
            | Operation::ReturnA => unreachable!("handled by step"),
            Operation::Jump => {}
        }
    }

    fn alu(&mut self, alu: Alu, operand: Operand, k: u32) {
        let source = source(operand, k);
        let code = &mut *self.code;
        let operation = match alu {
            Alu::Add => BPF_ADD,
            Alu::Sub => BPF_SUB,
            Alu::Mul => BPF_MUL,
            Alu::Or => BPF_OR,
            Alu::And => BPF_AND,
            Alu::Xor => BPF_XOR,
            Alu::Div => BPF_DIV,
            Alu::Mod => BPF_MOD,
            Alu::Lsh => BPF_LSH,
            Alu::Rsh => BPF_RSH,
        };
        match (alu, operand) {
            (Alu::Lsh | Alu::Rsh, Operand::K) if k >= 32 => code.mov32(A, Source::Constant(0)),
            (Alu::Lsh | Alu::Rsh, Operand::X) => {
                let [small, done] = [(); 2].map(|()| code.label());
                code.branch32(BPF_JLT, X, Source::Constant(32), small);
                code.mov32(A, Source::Constant(0));
                code.goto(done);
                code.bind(small);
                code.alu32(operation, A, source);
                code.bind(done);
            }
            (Alu::Div | Alu::Mod, Operand::X) => {
                code.branch32(BPF_JEQ, X, Source::Constant(0), self.body.reject);
                code.alu32(operation, A, source);
            }
            _ => code.alu32(operation, A, source),
        }
    }

    fn ancillary(&mut self, k: u32) {
        match Ancillary::at(k) {
            Some(Ok(Ancillary::PacketType)) => {
                let packet_type = self.body.access.packet_type;
                self.code.mov32(A, Source::Constant(packet_type));
            }
            Some(Ok(Ancillary::Interface)) => {
                if self.loads == Loads::ByHelper {
                    self.reload_context();
                }
                let offset = self.body.access.interface_offset;
                self.code.load(Width::Word, A, CONTEXT, offset);
            }
            None | Some(Err(_)) => unreachable!("a load of bytes, or refused before"),
        }
    }

    fn branch(&mut self, at: usize, test: Test, operand: Operand, known: u32) {
        let step = &self.body.steps[at];
        let (yes, no) = (step.next, step.otherwise);
        let source = source(operand, step.instruction.k);
        let (when, unless) = match test {
            Test::Equal => (BPF_JEQ, Some(BPF_JNE)),
            Test::Greater => (BPF_JGT, Some(BPF_JLE)),
            Test::GreaterOrEqual => (BPF_JGE, Some(BPF_JLT)),
            Test::AnyBit => (BPF_JSET, None),
        };
        if yes == no {
            return self.go(at, yes, known);
        }
        match unless {
            Some(unless) if yes == Target::Step(at + 1) => {
                let label = self.target(no, known);
                self.code.branch32(unless, A, source, label);
                self.go(at, yes, known);
            }
            _ => {
                let label = self.target(yes, known);
                self.code.branch32(when, A, source, label);
                self.go(at, no, known);
            }
        }
    }

    /// Goes on from step `at`.
    fn go(&mut self, at: usize, target: Target, known: u32) {
        let label = self.target(target, known);
        if target != Target::Step(at + 1) {
            self.code.goto(label);
        }
    }

    /// The label of a target, to which a path goes on which so many bytes are known.
    pub fn target(&mut self, target: Target, known: u32) -> Label {
        let Target::Step(step) = target else {
            return self.body.reject;
        };
        let others = self.known[step].unwrap_or(u32::MAX);
        self.known[step] = Some(others.min(known));
        self.labels[step]
    }
}

fn source(operand: Operand, k: u32) -> Source {
    match operand {
        Operand::K => Source::Constant(k),
        Operand::X => Source::Register(X),
    }
}
