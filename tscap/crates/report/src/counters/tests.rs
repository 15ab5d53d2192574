use super::*;
use tscap_document::Layout;
use tscap_lab::counters::fixtures::{by_ptp, characteristics};

/// Notes are folded on a terminal.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_text_has_every_table_and_fits_a_terminal() {
    let text = document(&characteristics()).text(Layout::WHOLE);
    let reported = words(&text);
    for part in [
        "not read: ptp: there is no PTP hardware clock",
        "not read: acpi-pm, acpi-pm-safe: the table FACP has 3 bytes only",
        "hpet 14,318,180 32 300.0 s 1 69.8",
        "tsc 2,500,000,000 64 233 years",
        "2 cpu 5.00 97.0 98.5",
        "6 net 5.00 10.0 6.00 4,000,000 800,000 1,000",
        "Reading a counter, 6 net",
        "hpet 1,890 1,895 1,900 1,905 1,909 1,909 91,900",
        "raw-vdso 1 idle",
        "HPET 1,935 (135) 1,900 (10) hpet",
        "the interface alone 240; 208 40 (10) raw-vdso",
        "ACPI, safe 10,440 (390) – acpi-pm-safe",
        "A clock of each counter beside the TSC (V-C)",
    ] {
        assert!(reported.contains(part), "{part}: {text}");
    }
    for layout in [Layout::WHOLE_THERE, Layout::BRIEF] {
        let text = document(&characteristics()).text(layout);
        assert!(text.starts_with("Counters (Table I)\n"), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= layout.columns, "{line}");
        }
        assert_eq!(text.contains("Beside the paper"), layout.is_whole, "{text}");
    }
}

/// Neither the TSC nor a clock made of it says how well a counter keeps its rate.
#[test]
fn without_another_oscillator_nothing_is_called_stable() {
    for of in [characteristics(), by_ptp("KVM virtual PTP")] {
        let shown = [document(&of).text(Layout::WHOLE), document(&of).page()];
        for text in shown {
            assert!(!text.to_lowercase().contains("stability"), "{text}");
            let reported = words(&text);
            assert!(reported.contains("an oscillator of its own"), "{text}");
        }
    }
    assert!(
        words(&document(&by_ptp("hyperv")).text(Layout::WHOLE))
            .contains("(hyperv) is the clock of")
    );
    let of = by_ptp("igb");
    assert!(words(&document(&of).text(Layout::WHOLE)).contains("Stability by /dev/ptp0 (IV-A)"));
    assert!(
        !document(&of)
            .text(Layout::WHOLE)
            .contains("nothing here says")
    );
}

#[test]
fn the_page_draws_boxes_and_rates_and_fetches_nothing() {
    for (mut of, drawings) in [(characteristics(), 17), (by_ptp("igb"), 18)] {
        let name = "<script>alert(1)</script>\"' onload=x";
        of.about.machine.cpu = name.into();
        of.warnings = vec![name.into()];
        of.absent[0].why = name.into();
        let page = document(&of).page();
        assert_eq!(page.matches("<svg").count(), drawings);
        for part in ["<script", "http:", "https:", "src=", "url("] {
            assert!(!page.contains(part), "{part}");
        }
        for (start, _) in page.match_indices("<svg") {
            let end = start + page[start..].find("</svg>").unwrap() + "</svg>".len();
            roxmltree::Document::parse(&page[start..end]).unwrap();
        }
    }
}

/// Ended within the first phase, before anything was seen twice.
#[test]
fn one_look_is_told_too() {
    let mut of = characteristics();
    of.about.partial = true;
    of.phases.truncate(1);
    for counter in &mut of.counters {
        counter.latency = vec![None];
        counter.interface.clear();
        counter.rate.clear();
        counter.course.clear();
    }
    assert!(document(&of).text(Layout::WHOLE).contains("1 idle"));
    assert!(document(&of).page().contains("</html>"));
}
