//! One of the two copies of a program.

use aya_obj::generated::{
    BPF_ADD, BPF_AND, BPF_DIV, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JLE, BPF_JLT, BPF_JNE, BPF_JSET,
    BPF_LSH, BPF_MOD, BPF_MUL, BPF_NEG, BPF_OR, BPF_RSH, BPF_SUB, BPF_XOR,
};

use super::{Assembler, FrameAccess, Label, Register, Scratch, Source, Width};
use crate::capturing::filter::ancillary::Ancillary;
use crate::capturing::filter::classic::{Alu, Operand, Operation, Size, Test};
use crate::capturing::filter::flow::{Step, Target};

/// A of classic BPF.
const A: Register = Register::R0;
/// The context, in the body of direct loads.
const CONTEXT: Register = Register::R1;
/// X of classic BPF.
const X: Register = Register::R2;
/// The frame's linear part and its end, in the body of direct loads.
const DATA: Register = Register::R3;
const DATA_END: Register = Register::R4;
const PLACE: Register = Register::R5;

/// The greatest end of a direct load, and the greatest X of one. The verifier takes both
/// together: their sum is below its `MAX_PACKET_OFF`.
const MOST_DIRECT: u32 = 0x7fff;
/// Ends of headers behind that of Ethernet: IPv4, ARP, IPv6. One comparison is made for all
/// loads up to such an end: a frame that has a part of one has all of it.
const HEADER_ENDS: [u32; 3] = [34, 42, 54];

/// How the frame's bytes are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loads {
    /// From the linear part.
    Direct,
    /// By the helper that knows the whole frame.
    ByHelper,
}

/// What both copies are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<'a> {
    pub steps: &'a [Step],
    pub access: &'a FrameAccess,
    pub scratch: Scratch,
    /// Where a direct load goes whose bytes are not in the linear part.
    pub slow: Label,
    /// Where a frame is rejected.
    pub reject: Label,
    /// Where the verdict is in r0.
    pub end: Label,
}

/// Bytes of the frame that an instruction loads.
#[derive(Clone, Copy, Debug)]
struct Load {
    from: u32,
    /// X is added to `from`.
    indirect: bool,
    size: Size,
    /// The result is the length of an IPv4 header, in X.
    header_length: bool,
}

impl Body<'_> {
    /// Appends this copy. r1 is the context.
    pub fn emit(&self, code: &mut Assembler, loads: Loads) {
        let mut emitter = Emitter {
            body: self,
            loads,
            labels: self.steps.iter().map(|_| code.label()).collect(),
            known: vec![None; self.steps.len()],
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
        let ends = loads
            .filter(|load| !load.indirect)
            .map(|load| load.from.saturating_add(load.size.bytes()));
        ends.filter(|end| *end <= header).max().unwrap_or(0)
    }
}

struct Emitter<'a> {
    body: &'a Body<'a>,
    loads: Loads,
    labels: Vec<Label>,
    /// Bytes that the linear part has at least when a step begins; `None` for a step that
    /// no path goes to.
    known: Vec<Option<u32>>,
    /// How far loads reach into each of [`HEADER_ENDS`].
    reached: [u32; HEADER_ENDS.len()],
    code: &'a mut Assembler,
}

impl Emitter<'_> {
    /// What the first step needs.
    fn begin(&mut self) {
        let (access, scratch) = (self.body.access, self.body.scratch);
        let loads_bytes = self.body.steps.iter().any(|step| load_of(step).is_some());
        match self.loads {
            Loads::Direct if loads_bytes => {
                self.code
                    .load(Width::Word, DATA, CONTEXT, access.data_offset);
                self.code
                    .load(Width::Word, DATA_END, CONTEXT, access.data_end_offset);
            }
            Loads::Direct => {}
            Loads::ByHelper => {
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

    /// False if the load can't be direct, so that nothing comes after it.
    fn load_direct(&mut self, load: Load, known: &mut u32) -> bool {
        let slow = self.body.slow;
        let size = load.size.bytes();
        let end = load.from.saturating_add(size);
        if end > MOST_DIRECT {
            self.code.goto(slow);
            return false;
        }
        let to = if load.header_length { X } else { A };
        let compared = if load.indirect {
            end
        } else {
            self.widened(end)
        };
        if load.indirect || *known < end {
            self.code.mov64(PLACE, DATA);
            if load.indirect {
                let most = Source::Constant(MOST_DIRECT);
                self.code.branch64(BPF_JGT, X, most, slow);
                self.code.alu64(BPF_ADD, PLACE, Source::Register(X));
            }
            self.code.alu64(BPF_ADD, PLACE, Source::Constant(compared));
            let data_end = Source::Register(DATA_END);
            self.code.branch64(BPF_JGT, PLACE, data_end, slow);
        }
        let (base, offset) = if load.indirect {
            (PLACE, -(size as i16))
        } else {
            *known = compared.max(*known);
            (DATA, load.from as i16)
        };
        self.code.load(width(load.size), to, base, offset);
        self.finish_load(load);
        true
    }

    /// The end up to which bytes are compared for at once.
    fn widened(&self, end: u32) -> u32 {
        let headers = HEADER_ENDS.iter().zip(self.reached);
        let mut headers = headers.filter(|(header, _)| end <= **header);
        headers.next().map_or(end, |(_, reached)| reached)
    }

    /// False if no frame has such bytes, so that nothing comes after it.
    fn load_by_helper(&mut self, load: Load, step: &Step) -> bool {
        let (access, scratch, reject) = (self.body.access, self.body.scratch, self.body.reject);
        if load.from > access.most_offset {
            self.code.goto(reject);
            return false;
        }
        let kept = if load.header_length {
            step.live_after.a().then_some(A)
        } else {
            step.live_after.x().then_some(X)
        };
        let frame = Register::Frame;
        if let Some(register) = kept {
            self.code
                .store(Width::Word, frame, scratch.kept(), register);
        }
        // The second argument is where X is.
        if load.indirect {
            self.code.alu64(BPF_ADD, X, Source::Constant(load.from));
            let most = Source::Constant(access.most_offset);
            self.code.branch64(BPF_JGT, X, most, reject);
        } else {
            self.code.mov32(Register::R2, Source::Constant(load.from));
        }
        self.reload_context();
        self.code.mov64(Register::R3, frame);
        let loaded = i32::from(scratch.loaded()).cast_unsigned();
        self.code
            .alu64(BPF_ADD, Register::R3, Source::Constant(loaded));
        self.code
            .mov32(Register::R4, Source::Constant(load.size.bytes()));
        self.code.call(access.load_helper);
        self.code
            .branch32(BPF_JNE, Register::R0, Source::Constant(0), reject);
        let to = if load.header_length { X } else { A };
        self.code
            .load(width(load.size), to, frame, scratch.loaded());
        self.finish_load(load);
        if let Some(register) = kept {
            self.code.load(Width::Word, register, frame, scratch.kept());
        }
        true
    }

    /// What is loaded becomes a number.
    fn finish_load(&mut self, load: Load) {
        match load.size {
            Size::Byte => {}
            Size::Half => self.code.network_to_host(A, 16),
            Size::Word => self.code.network_to_host(A, 32),
        }
        if load.header_length {
            self.code.alu32(BPF_AND, X, Source::Constant(15));
            self.code.alu32(BPF_LSH, X, Source::Constant(2));
        }
    }

    fn reload_context(&mut self) {
        let context = self.body.scratch.context();
        self.code
            .load(Width::Double, CONTEXT, Register::Frame, context);
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
    fn target(&mut self, target: Target, known: u32) -> Label {
        let Target::Step(step) = target else {
            return self.body.reject;
        };
        let others = self.known[step].unwrap_or(u32::MAX);
        self.known[step] = Some(others.min(known));
        self.labels[step]
    }
}

fn load_of(step: &Step) -> Option<Load> {
    let it = &step.instruction;
    let load = Load {
        from: it.k,
        indirect: false,
        size: Size::Byte,
        header_length: false,
    };
    match it.operation() {
        Operation::LoadAbsolute(size) if Ancillary::at(it.k).is_none() => {
            Some(Load { size, ..load })
        }
        Operation::LoadIndirect(size) => Some(Load {
            size,
            indirect: true,
            ..load
        }),
        Operation::LoadXHeaderLength => Some(Load {
            header_length: true,
            ..load
        }),
        _ => None,
    }
}

fn source(operand: Operand, k: u32) -> Source {
    match operand {
        Operand::K => Source::Constant(k),
        Operand::X => Source::Register(X),
    }
}

fn width(size: Size) -> Width {
    match size {
        Size::Byte => Width::Byte,
        Size::Half => Width::Half,
        Size::Word => Width::Word,
    }
}
