//! Of scripted series, for which the share of delays beyond any value is known.
//!
//! `TSCAP_SERIES=1000 cargo test --release -p tscap --lib certificate` runs so many of them,
//! longer ones than the few that every run of the tests has.

use std::env;

use super::*;

mod series;

use series::{CLASSES, Class, Series};

/// On every run, of all classes together, and the packets of the longest.
const FEW: (usize, u64) = (90, 20_000);
/// The packets of the longest of many.
const LONG: u64 = 300_000;
/// Of series without dependence so many may be taken for dependent by chance.
const MISTAKEN: f64 = 0.01;

/// What is said of a series, and whether that is wrong.
struct Said {
    certificate: schema::Certificate,
    is_exceeded: bool,
}

fn said(series: &mut Series) -> Said {
    let mut certificate = Certificate::new();
    for _ in 0..series.packets {
        certificate.add(series.next_ns());
    }
    let certificate = certificate.finish(Some(0));
    let is_exceeded = match certificate {
        schema::Certificate::Holds {
            max_ns, exceeding, ..
        } => series.share_beyond(max_ns) > exceeding,
        schema::Certificate::None { .. } => false,
    };
    Said {
        certificate,
        is_exceeded,
    }
}

/// At most one series in a hundred exceeds what is said of it; and of most something is said.
#[test]
fn it_holds_for_delays_that_depend_on_each_other() {
    let many = env::var("TSCAP_SERIES").ok();
    let (count, longest) = match many {
        Some(many) => (many.parse().expect("TSCAP_SERIES is a number"), LONG),
        None => FEW,
    };
    let mut exceeded = Vec::new();
    for class in CLASSES {
        let of_class = count / CLASSES.len();
        let (mut certified, mut independent) = (0, 0);
        for seed in 0..of_class as u64 {
            let mut series = Series::new(class, seed, longest);
            let said = said(&mut series);
            if let schema::Certificate::Holds { n, blocks, .. } = said.certificate {
                certified += 1;
                independent += usize::from(n == blocks);
            }
            if said.is_exceeded {
                exceeded.push(format!("{series:?}: {:?}", said.certificate));
            }
        }
        println!("{class:?}: {certified} of {of_class}, as independent: {independent}");
        let mistaken = (of_class as f64 * MISTAKEN).ceil() as usize;
        if !class.depends() {
            assert!(independent + mistaken >= of_class, "{class:?}")
        } else {
            assert!(3 * certified >= of_class, "{class:?}: {certified}")
        }
    }
    println!(
        "{} of {count} exceeded:\n{}",
        exceeded.len(),
        exceeded.join("\n")
    );
    assert!(exceeded.len() * 100 <= count, "{}", exceeded.len());
}

/// Blocks are needed: without them what is said does not hold.
#[test]
fn packets_that_depend_on_each_other_are_no_independent_ones() {
    let mut wrong = 0;
    for seed in 0..20 {
        let mut series = Series::new(Class::Autoregressive, seed, 5_000);
        let delays: Vec<_> = (0..series.packets).map(|_| series.next_ns()).collect();
        let max_ns = delays.iter().copied().max().unwrap();
        wrong += u32::from(series.share_beyond(max_ns) > LN_100 / delays.len() as f64);
    }
    assert!(wrong >= 2, "{wrong}");
}

#[test]
fn the_correlation_is_that_of_the_textbook() {
    let mut random = fastrand::Rng::with_seed(5);
    let values: Vec<f64> = (0..1_000).map(|_| 1e6 + random.f64()).collect();
    let mut neighbours = Neighbours::default();
    values.iter().for_each(|value| neighbours.add(*value));
    let mean = values.iter().sum::<f64>() / 1_000.0;
    let products = values
        .windows(2)
        .map(|two| (two[0] - mean) * (two[1] - mean));
    let squares = values.iter().map(|value| (value - mean).powi(2));
    let expected = products.sum::<f64>() / squares.sum::<f64>();
    assert!(
        (neighbours.correlation() - expected).abs() < 1e-9,
        "{expected}"
    );
}

#[test]
fn few_delays_and_equal_ones() {
    let said = |delays: &[i64]| {
        let mut certificate = Certificate::new();
        delays.iter().for_each(|delay| certificate.add(*delay));
        certificate.finish(Some(7))
    };
    let schema::Certificate::None { why } = said(&[5; 49]) else {
        panic!("of few");
    };
    assert_eq!(
        why,
        "whether delays depend on each other is not told by fewer than 50"
    );
    let schema::Certificate::Holds {
        n,
        max_ns,
        bound_ns,
        exceeding,
        blocks,
        block_packets,
        correlation,
    } = said(&[5; 1_000])
    else {
        panic!("all the same");
    };
    assert_eq!(
        (n, max_ns, bound_ns, blocks, block_packets),
        (1_000, 5, 7, 1_000, 1)
    );
    assert!((exceeding - 0.004_605).abs() < 1e-6 && correlation == 0.0);
    // Rising all the time.
    let rising: Vec<_> = (1..=1_000).collect();
    let schema::Certificate::None { why } = said(&rising) else {
        panic!("no end in sight");
    };
    assert!(why.contains("over 16 packets and more"), "{why}");
    // A delay that is not positive does no harm.
    assert!(matches!(
        said(&[-3; 60]),
        schema::Certificate::Holds { max_ns: -3, .. }
    ));
}
