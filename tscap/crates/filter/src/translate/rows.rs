//! Rows of tests whether A is one of many constants, as lists of hosts and ports make
//! them: found by halves instead of one by one.

use crate::ebpf::{BPF_JEQ, BPF_JGE};

use super::Source;
use super::emitter::{A, Emitter};
use crate::classic::{Operand, Operation, Test};
use crate::flow::{Step, Target};

/// Tests of a row that are made one by one: halving so few gains nothing.
const FEW: usize = 4;

/// A row of tests of one A.
#[derive(Debug)]
struct Row {
    /// Constants in order, each once, and where each goes.
    cases: Vec<(u32, Target)>,
    /// Where every other value goes.
    otherwise: Target,
}

impl Emitter<'_> {
    /// Emits the row that begins with step `at`. False, and nothing, if there is none of
    /// more than a few tests. Its other steps are left out: nothing else goes to them.
    pub fn row(&mut self, at: usize, known: u32) -> bool {
        let Some(row) = row(self.body.steps, &self.entries, at) else {
            return false;
        };
        self.search(&row.cases, row.otherwise, known);
        true
    }

    fn search(&mut self, cases: &[(u32, Target)], otherwise: Target, known: u32) {
        if cases.len() > FEW {
            let (lower, upper) = cases.split_at(cases.len() / 2);
            let from = self.code.label();
            self.code
                .branch32(BPF_JGE, A, Source::Constant(upper[0].0), from);
            self.search(lower, otherwise, known);
            self.code.bind(from);
            self.search(upper, otherwise, known);
            return;
        }
        for (constant, target) in cases {
            let label = self.target(*target, known);
            self.code
                .branch32(BPF_JEQ, A, Source::Constant(*constant), label);
        }
        let label = self.target(otherwise, known);
        self.code.goto(label);
    }
}

/// How many steps go to each one, apart from jumps, which only lead there.
pub(super) fn entries(steps: &[Step]) -> Vec<usize> {
    let mut entries = vec![0; steps.len()];
    for step in steps.iter().filter(|step| !is_jump(step)) {
        for target in [step.next, step.otherwise] {
            if let Target::Step(to) = destination(steps, target) {
                entries[to] += 1;
            }
        }
    }
    entries
}

fn row(steps: &[Step], entries: &[usize], first: usize) -> Option<Row> {
    let mut cases = Vec::new();
    let mut at = first;
    let otherwise = loop {
        let step = &steps[at];
        cases.push((step.instruction.k, destination(steps, step.next)));
        match destination(steps, step.otherwise) {
            Target::Step(next) if tests_constant(&steps[next]) && entries[next] == 1 => at = next,
            other => break other,
        }
    };
    // Of two tests for one constant the first one decides: the sort is stable.
    cases.sort_by_key(|(constant, _)| *constant);
    cases.dedup_by_key(|(constant, _)| *constant);
    (tests_constant(&steps[first]) && cases.len() > FEW).then_some(Row { cases, otherwise })
}

fn tests_constant(step: &Step) -> bool {
    step.instruction.operation() == Operation::Branch(Test::Equal, Operand::K)
}

fn is_jump(step: &Step) -> bool {
    step.instruction.operation() == Operation::Jump
}

/// Where a way to `target` ends up behind jumps.
fn destination(steps: &[Step], target: Target) -> Target {
    let mut end = target;
    while let Target::Step(step) = end
        && is_jump(&steps[step])
    {
        end = steps[step].next;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::Program;
    use crate::flow::flow;
    use crate::parse;
    use crate::translate::{FrameAccess, translate};

    const LOAD: &str = "32 0 0 26";
    const ACCEPT: &str = "6 0 0 1";
    const REJECT: &str = "6 0 0 0";

    fn program(lines: &[String]) -> Program {
        parse(&format!("{},{}", lines.len(), lines.join(","))).unwrap()
    }

    /// A load, tests of `constants`, accept, reject.
    fn of(constants: &[u32]) -> Vec<String> {
        let tests = constants.iter().enumerate().map(|(at, k)| {
            let behind = constants.len() - at - 1;
            format!("21 {behind} {} {k}", usize::from(behind == 0))
        });
        let ends = [ACCEPT, REJECT].map(str::to_owned);
        [LOAD.to_owned()]
            .into_iter()
            .chain(tests)
            .chain(ends)
            .collect()
    }

    fn row_at(lines: &[String], at: usize) -> Option<Row> {
        let steps = flow(&program(lines));
        row(&steps, &entries(&steps), at)
    }

    #[test]
    fn a_row_is_found_and_put_in_order() {
        let row = row_at(&of(&[9, 3, 7, 3, 1, 5]), 1).unwrap();
        let accept = Target::Step(7);
        assert_eq!(row.cases, [1, 3, 5, 7, 9].map(|k| (k, accept)));
        assert_eq!(row.otherwise, Target::Step(8));
        assert!(row_at(&of(&[9, 3, 7, 1]), 1).is_none(), "too short");
        assert!(row_at(&of(&[9, 3, 7, 3, 1, 5]), 0).is_none(), "a load");
    }

    #[test]
    fn the_first_of_two_tests_for_one_constant_decides() {
        let mut lines = of(&[1, 2, 3, 4, 5, 1]);
        // The last one, which accepts a 1, comes too late: the first one rejects it.
        lines[1] = "21 6 0 1".into();
        let row = row_at(&lines, 1).unwrap();
        assert_eq!(row.cases[0], (1, Target::Step(8)));
    }

    #[test]
    fn a_row_ends_where_something_else_goes_into_it() {
        let mut lines = of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        // Around the first six tests if A is 0.
        lines.insert(1, "21 6 0 0".into());
        let row = row_at(&lines, 1).unwrap();
        assert_eq!(row.cases.len(), 7);
        assert_eq!(row.otherwise, Target::Step(8));
        assert_eq!(row_at(&lines, 8).unwrap().cases.len(), 6);
    }

    /// As libpcap writes tests that are too far from where they go.
    #[test]
    fn jumps_between_tests_belong_to_the_row() {
        let constants = [3, 1, 4, 15, 9, 2];
        let mut lines = vec![LOAD.to_owned()];
        for (at, k) in constants.iter().enumerate() {
            let over = 2 * (constants.len() - at - 1) + 1;
            lines.extend([format!("21 0 1 {k}"), format!("5 0 0 {over}")]);
        }
        lines.extend([REJECT, ACCEPT].map(str::to_owned));
        let row = row_at(&lines, 1).unwrap();
        assert_eq!(
            row.cases,
            [1, 2, 3, 4, 9, 15].map(|k| (k, Target::Step(14)))
        );
        assert_eq!(row.otherwise, Target::Step(13));
    }

    #[test]
    fn hundreds_of_constants_take_few_comparisons() {
        let constants: Vec<_> = (0..200).map(|k| 7 * k).collect();
        let code = translate(&program(&of(&constants)), &FrameAccess::XDP, -88).unwrap();
        let halvings = code.iter().filter(|it| it.code == 6 | BPF_JGE);
        // In each of the two copies.
        assert_eq!(halvings.count(), 2 * 63);
    }
}
