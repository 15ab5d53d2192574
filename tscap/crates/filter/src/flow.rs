//! The steps of a program in an order in which every jump goes forward: loops are
//! unrolled, and what is never reached is left out.

use super::MOST_REPEATS;
use super::classic::{Instruction, Operand, Operation, Program, SCRATCH_WORDS};

/// Where a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To the step of this number.
    Step(usize),
    /// The frame is rejected.
    Reject,
}

/// An instruction at its place in the flow.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub instruction: Instruction,
    /// Where it goes; for a test, if that is true. A return goes nowhere.
    pub next: Target,
    /// Where a test goes that is false.
    pub otherwise: Target,
    /// What later steps may read of what was there before this one.
    pub live: Live,
    /// What later steps may read of what is there after this one.
    pub live_after: Live,
}

/// A set of A, X and the words of the scratch memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Live(u32);

impl Live {
    const A: u32 = SCRATCH_WORDS;
    const X: u32 = SCRATCH_WORDS + 1;

    pub fn a(self) -> bool {
        self.has(Self::A)
    }

    pub fn x(self) -> bool {
        self.has(Self::X)
    }

    /// The scratch memory's words.
    pub fn words(self) -> impl Iterator<Item = u32> {
        (0..SCRATCH_WORDS).filter(move |word| self.has(*word))
    }

    fn has(self, bit: u32) -> bool {
        self.0 & 1 << bit != 0
    }

    /// Before an instruction: what it reads, and what is live after it and not written.
    fn before(self, it: &Instruction) -> Self {
        const A: u32 = 1 << Live::A;
        const X: u32 = 1 << Live::X;
        let word = || 1 << it.k;
        let (reads, writes) = match it.operation() {
            Operation::LoadAbsolute(_) | Operation::LoadLength | Operation::LoadConstant => (0, A),
            Operation::LoadIndirect(_) | Operation::ToA => (X, A),
            Operation::LoadScratch => (word(), A),
            Operation::LoadXHeaderLength | Operation::LoadXLength | Operation::LoadXConstant => {
                (0, X)
            }
            Operation::LoadXScratch => (word(), X),
            Operation::Store => (A, word()),
            Operation::StoreX => (X, word()),
            Operation::Alu(_, Operand::K) | Operation::Negate => (A, A),
            Operation::Alu(_, Operand::X) => (A | X, A),
            Operation::ToX => (A, X),
            Operation::Branch(_, Operand::K) => (A, 0),
            Operation::Branch(_, Operand::X) => (A | X, 0),
            Operation::Jump => (0, 0),
            Operation::ReturnConstant => return Self(0),
            Operation::ReturnA => return Self(A),
        };
        Self(self.0 & !writes | reads)
    }
}

/// The steps of a program; the first one is the beginning.
pub(super) fn flow(program: &Program) -> Vec<Step> {
    let mut steps = unrolled(program);
    keep_reached(&mut steps);
    for at in (0..steps.len()).rev() {
        let live = |target: &Target| match target {
            Target::Step(step) => steps[*step].live.0,
            Target::Reject => 0,
        };
        let after = Live(live(&steps[at].next) | live(&steps[at].otherwise));
        steps[at].live_after = after;
        steps[at].live = after.before(&steps[at].instruction);
    }
    steps
}

/// Every step, reached or not, with each loop once for the first time and once for each
/// repetition.
fn unrolled(program: &Program) -> Vec<Step> {
    let order = order(program);
    let mut first = vec![0; program.instructions().len()];
    for (place, &(number, copy)) in order.iter().enumerate() {
        if copy == 0 {
            first[number] = place;
        }
    }
    let step = |&(number, copy): &(usize, usize)| {
        let it = program.instructions()[number];
        let around = program.loop_around(number).map(|it| &program.loops()[it]);
        let to = |offset: i64| {
            let to = usize::try_from(number as i64 + 1 + offset).expect("inside the program");
            match around.filter(|range| range.contains(&to)) {
                None => Target::Step(first[to]),
                Some(range) => {
                    let copy = copy + usize::from(to <= number);
                    if copy > MOST_REPEATS as usize {
                        return Target::Reject;
                    }
                    Target::Step(first[to] + copy * range.len())
                }
            }
        };
        let (next, otherwise) = match it.operation() {
            Operation::ReturnConstant | Operation::ReturnA => (Target::Reject, Target::Reject),
            Operation::Branch(..) => (to(it.jt.into()), to(it.jf.into())),
            Operation::Jump => (to(it.jump()), to(it.jump())),
            _ => (to(0), to(0)),
        };
        Step {
            instruction: it,
            next,
            otherwise,
            live: Live::default(),
            live_after: Live::default(),
        }
    };
    order.iter().map(step).collect()
}

/// The instructions in the order of their steps, each with the number of repetitions
/// before it.
fn order(program: &Program) -> Vec<(usize, usize)> {
    let mut order = Vec::new();
    let mut at = 0;
    for range in program.loops() {
        order.extend((at..range.start).map(|number| (number, 0)));
        for copy in 0..=MOST_REPEATS as usize {
            order.extend(range.clone().map(|number| (number, copy)));
        }
        at = range.end;
    }
    order.extend((at..program.instructions().len()).map(|number| (number, 0)));
    order
}

/// Leaves out steps that nothing goes to: the kernel refuses a program that has some.
fn keep_reached(steps: &mut Vec<Step>) {
    let mut reached = vec![false; steps.len()];
    reached[0] = true;
    for at in 0..steps.len() {
        if reached[at] {
            for target in [steps[at].next, steps[at].otherwise] {
                if let Target::Step(step) = target {
                    reached[step] = true;
                }
            }
        }
    }
    let mut kept = 0;
    let numbers: Vec<_> = reached
        .iter()
        .map(|reached| {
            kept += usize::from(*reached);
            kept.wrapping_sub(1)
        })
        .collect();
    let mut reached = reached.into_iter();
    steps.retain(|_| reached.next().unwrap_or(false));
    for step in steps {
        for target in [&mut step.next, &mut step.otherwise] {
            if let Target::Step(number) = target {
                *number = numbers[*number];
            }
        }
    }
}
