//! The C header beside the Rust reader.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tscap_clock_reader::calculation::{self, Difference, Refused, State, Times, Witness};
use tscap_clock_reader::layout::{Latest, Page, Piece, UNKNOWN, state};
use tscap_testkit::root::skip;
use tscap_testkit::shown::root;

use super::{Served, has_no_counter};

/// Compiles the program beside this file; `None` if there is no compiler.
fn compiled(folder: &Path, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    let program = folder.join(format!("reader-{compiler}"));
    let mut command = Command::new(compiler);
    command.args(options);
    command
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program);
    command.arg("-I").arg(root().join("packaging/include"));
    command.arg(root().join("tscap/tests/any/shared_clock/reader.c"));
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            skip(&format!("{compiler}: {error}"));
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler}: {said}");
    Some(program)
}

const LANGUAGES: [(&str, &[&str]); 2] = [
    ("gcc", &["-std=c11", "-pedantic"]),
    ("g++", &["-x", "c++", "-std=c++17"]),
];

fn number(refused: Refused) -> u32 {
    match refused {
        Refused::Busy => 1,
        Refused::Closed => 2,
        Refused::Void => 3,
        Refused::Unresolved => 4,
        Refused::Set => 5,
        Refused::Jumped => 6,
        Refused::TooOld => 7,
        Refused::Future => 8,
        Refused::Ambiguous => 9,
        Refused::Garbage => 10,
    }
}

fn said(times: Result<Times, Refused>) -> String {
    let times = match times {
        Err(refused) => return format!("refused {}", number(refused)),
        Ok(times) => times,
    };
    let state = match times.state {
        State::Unsynchronised => 1,
        State::Synchronised => 2,
        State::Holdover => 3,
        State::Stale => 4,
    };
    let mut line = format!("{} {state}", times.raw);
    for (name, interval) in [("host", times.host), ("utc", times.utc)] {
        if let Some(interval) = interval {
            line += &format!(" {name} {} {}", interval.earliest_ns, interval.latest_ns);
        }
    }
    line
}

const S: u64 = 1_000_000_000;

/// A page with events, some of it nonsense for some seeds.
fn page(random: &mut fastrand::Rng) -> Page {
    let rate = (1u64 << 57) / random.u64(1..5) + random.u64(0..1_000_000);
    let bound = |random: &mut fastrand::Rng| match random.u8(0..6) {
        0 => UNKNOWN,
        _ => random.u64(0..1_000_000),
    };
    let mut past = Vec::new();
    let (mut raw, mut real) = (50 * S, 1_700_000_000 * S);
    for _ in 0..random.usize(0..=64) {
        let until = raw + random.u64(0..3 * S);
        let piece = Piece {
            from: raw,
            until,
            real_ns: real,
            rate,
            host_bound_ns: random.u64(0..1_000),
            utc_offset_ns: random.i64(-1_000..1_000),
            utc_bound_ns: bound(random),
        };
        let ns = (u128::from(until - raw) * u128::from(rate)) >> 57;
        real += u64::try_from(ns).unwrap();
        raw = until;
        if random.u8(0..4) == 0 {
            raw += random.u64(0..S / 10);
            real = real.saturating_add_signed(random.i64(-3 * S.cast_signed()..S.cast_signed()));
        }
        past.push(piece);
    }
    let latest = Latest {
        raw,
        real_ns: real,
        rate,
        host_bound_ns: random.u64(0..1_000),
        host_growth: random.u64(0..10_000_000),
        utc_offset_ns: random.i64(-1_000..1_000),
        utc_bound_ns: bound(random),
        utc_growth: random.u64(0..10_000_000),
        mono_to_real_ns: 1_700_000_000 * S.cast_signed() + random.i64(0..1_000),
        difference_rate: rate + random.u64(0..1_000_000),
        difference_bound_ppb: random.u64(0..1_000),
        state: random
            .u64(0..20)
            .min(state::SYNCHRONISED)
            .max(random.u64(0..7) / 6 * 5),
        stale_raw: raw + S,
        void_raw: raw + 10 * S,
        epoch_raw: random.u64(0..60 * S),
        ..Latest::default()
    };
    let page = Page { latest, past };
    let mut words = page.to_words();
    if random.u8(0..4) == 0 {
        for _ in 0..random.usize(1..20) {
            words[random.usize(0..18)] = random.u64(..) >> random.u32(0..64);
        }
    }
    Page::from_words(&words)
}

fn difference(found: Result<Difference, Refused>) -> String {
    match found {
        Ok(found) => format!("{} {}", found.ns, found.bound_ns),
        Err(refused) => format!("refused {}", number(refused)),
    }
}

/// A question in the words of the program, and the answer of the Rust reader.
fn question(page: &Page, now: u64, random: &mut fastrand::Rng) -> (String, String) {
    let raw = |random: &mut fastrand::Rng| match random.u8(0..10) {
        0 => random.u64(..),
        1 => page.latest.raw.wrapping_add(random.u64(0..S)),
        _ => random.u64(40 * S..now.max(41 * S)),
    };
    let real = |random: &mut fastrand::Rng| match random.u8(0..10) {
        0 => random.u64(..),
        1 => page.latest.real_ns.wrapping_add(random.u64(0..S)),
        _ => 1_699_999_990 * S + random.u64(0..200 * S),
    };
    match random.u8(0..5) {
        0 => {
            let at = raw(random);
            (
                format!("at {at}"),
                said(calculation::at_or_behind(&page.latest, at)),
            )
        }
        1 => {
            let at = raw(random);
            (
                format!("raw {at}"),
                said(calculation::of_raw(page, now, at)),
            )
        }
        2 => {
            let at = real(random);
            (
                format!("real {at}"),
                said(calculation::of_real(page, now, at)),
            )
        }
        3 => {
            let [from, until] = [raw(random), raw(random)];
            let found = calculation::between(&page.latest, now, from, until);
            (format!("between {from} {until}"), difference(found))
        }
        _ => {
            let real_ns = real(random);
            let mono = real_ns.wrapping_sub(page.latest.mono_to_real_ns.cast_unsigned());
            let witness = Witness {
                raw: raw(random),
                real_ns,
                mono_ns: [
                    mono.wrapping_sub(random.u64(0..9)),
                    mono.wrapping_add(random.u64(0..9)),
                ],
                lag_ns: random.u64(0..100 * S),
            };
            let Witness {
                raw,
                mono_ns: [before, after],
                lag_ns,
                ..
            } = witness;
            let line = format!("confirm {raw} {real_ns} {before} {after} {lag_ns}");
            let found = calculation::confirm(&page.latest, &witness);
            let found = found.map_or_else(
                |it| format!("refused {}", number(it)),
                |()| "confirmed".into(),
            );
            (line, found)
        }
    }
}

#[test]
fn c_and_rust_say_the_same_of_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let programs = LANGUAGES.map(|(compiler, options)| compiled(folder.path(), compiler, options));
    let mut refused = 0;
    let mut all = 0;
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let page = page(&mut random);
        let now = page.latest.raw.saturating_add(random.u64(0..2 * S));
        let file = folder.path().join("page");
        let words = page.to_words().map(u64::to_le_bytes);
        fs::write(&file, words.as_flattened()).unwrap();
        let questions: Vec<_> = (0..500)
            .map(|_| question(&page, now, &mut random))
            .collect();
        let input: String = questions
            .iter()
            .map(|(line, _)| format!("{line}\n"))
            .collect();
        for program in programs.iter().flatten() {
            let mut child = Command::new(program)
                .arg(&file)
                .arg(now.to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let writer = {
                let input = input.clone();
                std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap())
            };
            let output = child.wait_with_output().unwrap();
            writer.join().unwrap();
            assert!(output.status.success(), "{output:?}");
            let answers = String::from_utf8(output.stdout).unwrap();
            assert_eq!(answers.lines().count(), questions.len());
            for (answer, (line, expected)) in answers.lines().zip(&questions) {
                assert_eq!(
                    answer, expected,
                    "{seed}: {line} at {now} of {:?}",
                    page.latest
                );
                all += 1;
                refused += u32::from(answer.starts_with("refused"));
            }
        }
    }
    // Both kinds of answers came.
    assert!(
        all == 0 || (all / 10..all * 9 / 10).contains(&refused),
        "{refused} of {all}"
    );
}

#[test]
fn a_program_in_c_reads_the_served_clock() {
    if has_no_counter() {
        return;
    }
    let served = Served::start();
    for (compiler, options) in LANGUAGES {
        let Some(program) = compiled(served.folder(), compiler, options) else {
            continue;
        };
        let read = |path: &Path| {
            let output = Command::new(&program)
                .arg("read")
                .arg(path)
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let text = read(served.path());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[0].contains(" host "), "{text}");
        assert_eq!((lines[1], lines[4]), ("1", "0 1"), "{text}");
        assert!(!text.contains("refused"), "{text}");
        let nowhere = served.folder().join("nowhere");
        assert_eq!(read(&nowhere), "refused 11\n");
        fs::write(&nowhere, "nonsense").unwrap();
        assert_eq!(read(&nowhere), "refused 12\n");
        fs::remove_file(&nowhere).unwrap();
    }
}
