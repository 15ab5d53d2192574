use super::drawings::drawings;
use super::{all, both_ways, live, recorded};
use crate::report::{page, text};

#[test]
fn the_page_asks_for_nothing_from_elsewhere() {
    for comparison in all() {
        let page = page(&comparison);
        for part in [
            "http:", "https:", "src=", "href=", "url(", "@import", "<script",
        ] {
            assert!(!page.contains(part), "{part}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn names_are_text_and_nothing_else() {
    let mut hostile = recorded();
    let name = "<script>alert(1)</script>\"' onload=x &amp;\x1b[2J";
    hostile.machine.interface = name.into();
    hostile.machine.cpu = name.into();
    hostile.machine.mitigations = [(name.to_owned(), name.to_owned())].into();
    hostile.command = vec![name.into()];
    hostile.warnings = vec![name.into()];
    hostile.method.checkpoint.path = name.into();
    for subject in &mut hostile.subjects {
        subject.path = name.into();
        for precision in &mut subject.precision {
            precision.pattern = name.into();
            precision.intervals_from = name.into();
        }
    }
    let html = page(&hostile);
    assert!(!html.contains("<script") && !html.contains("\"' onload"));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    for drawing in drawings(&html) {
        roxmltree::Document::parse(&drawing.replace('\x1b', "")).unwrap();
    }
    assert!(!text(&hostile).contains('\x1b'));
}

#[test]
fn what_must_be_known_comes_first() {
    let mut comparison = recorded();
    assert!(text(&comparison).starts_with("noisy machine: a hypervisor took 3.1 %"));
    comparison.warnings.clear();
    comparison.partial = true;
    assert!(text(&comparison).starts_with("partial: ended early, after 5 whole rounds\n"));
    let html = page(&comparison);
    let (partial, verdicts) = (html.find("partial: ended"), html.find("Verdicts"));
    assert!(partial.is_some() && partial < verdicts);
    comparison.partial = false;
    assert!(text(&comparison).starts_with("kernel "));
    assert!(!page(&comparison).contains("class=\"notices\""));
}

#[test]
fn live_traffic_says_what_is_not_known() {
    let page = page(&live());
    assert!(page.contains("live traffic carries no send stamps"));
    assert!(page.contains("how many frames of live traffic were sent"));
    assert_eq!(drawings(&page).len(), 4);
    assert!(text(&live()).contains("2,000 frames of live traffic of each stamp"));
}

#[test]
fn interrupts_off_have_their_table_and_figure() {
    let titles = ["Interrupts off around", "interrupts on and off"];
    for title in titles {
        assert!(!page(&recorded()).contains(title), "{title}");
        assert!(page(&both_ways()).contains(title), "{title}");
    }
}
