//! What the paper shows of its patterns and of loss.

use super::recorded;
use crate::compare::document;
use tscap_document::Layout;
use tscap_lab::compare::schema::{Comparison, KernelStamp, LossMethod, Precision};

/// With what an earlier tscap did not measure.
pub(crate) fn whole() -> Comparison {
    let mut whole = recorded();
    whole.method.loss = Some(LossMethod {
        frames: 20_000,
        rounds: 10,
        sender_cpu: 0,
        receive_cpu: 1,
        capture_cpus: vec![0],
        ring_bytes: 4 << 20,
    });
    for (index, subject) in whole.subjects.iter_mut().enumerate() {
        for precision in &mut subject.precision {
            precision.cost_histogram = (0..20).map(|at| (30.0 + f64::from(at), 0.05)).collect();
            precision.cost_bucket_ns = 1.0;
            precision.cost_autocorrelation = vec![0.1; 20];
        }
        let points = subject
            .loss_by_size
            .iter_mut()
            .chain(&mut subject.loss_by_gap);
        for point in points {
            let lost = 0.1 + 0.01 * index as f64;
            (point.sent, point.lost) = (200_000, (200_000.0 * lost) as u64);
            point.rounds = (0..10)
                .map(|round| lost + 0.001 * f64::from(round % 3))
                .collect();
        }
    }
    let with_pattern =
        |subject: &&tscap_lab::compare::schema::Subject| !subject.precision.is_empty();
    let first = whole.subjects.iter().find(with_pattern).unwrap();
    let precision = first.precision.iter().map(|of| Precision {
        cost_ns: None,
        cost_histogram: Vec::new(),
        cost_autocorrelation: Vec::new(),
        correlation: None,
        ..of.clone()
    });
    whole.kernel_stamp = Some(KernelStamp {
        precision: precision.collect(),
    });
    whole
}

#[test]
fn each_pattern_has_the_density_and_the_memory_of_its_costs() {
    let earlier = document(&recorded()).page();
    let page = document(&whole()).page();
    for pattern in ["voip", "hd"] {
        for title in [
            "Density of the cost of a stamp",
            "Autocorrelation of the cost of a stamp",
        ] {
            let title = format!("<figcaption>{title}, {pattern}</figcaption>");
            assert!(page.contains(&title), "{title}");
            assert!(!earlier.contains(&title), "{title}");
        }
    }
}

#[test]
fn the_kernels_own_stamp_stands_beside_ours() {
    let whole = whole();
    let text = document(&whole).text(Layout::WHOLE);
    for pattern in ["voip", "hd"] {
        let row = format!("{pattern}, kernel");
        // Delay and interval error; its cost is not known.
        assert_eq!(text.matches(&row).count(), 2, "{text}");
    }
    assert!(
        !document(&recorded())
            .text(Layout::WHOLE)
            .contains("voip, kernel")
    );
    assert!(document(&whole).page().contains(">kernel</text>"));
}

#[test]
fn loss_has_intervals_and_leaves_out_what_was_not_sent() {
    let mut whole = whole();
    let words = document(&whole)
        .text(Layout::WHOLE)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        words
            .contains("sent from CPU 0, received on CPU 1, captured on CPU 0 with a ring of 4 MiB"),
        "{words}"
    );
    let shown = document(&whole).page();
    assert!(shown.contains("bars: 95 % of the mean of the rounds"));
    assert!(shown.contains("Loss against the gap between frames"));
    for subject in &mut whole.subjects {
        for point in &mut subject.loss_by_gap {
            point.rate_asked = Some(1e6);
            point.rates = vec![0.9e6; 10];
        }
    }
    let shown = document(&whole).page();
    assert!(!shown.contains("Loss against the gap between frames"));
    assert!(shown.contains("Loss against frame size"));
}
