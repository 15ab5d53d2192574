//! `--plan`, measured here and from an earlier sweep.

use serde_json::Value;
use tscap_testkit::command::{Done, run};
use tscap_testkit::files;
use tscap_testkit::root::alone;

use super::{LIMIT, MEASURES, Place, fails, loss, quick};

fn answer(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
}

/// Whatever the machine, some frames a second fit.
#[test]
fn a_load_that_fits_is_measured_here() {
    let Some(_lock) = alone("measures how fast frames are taken") else {
        return;
    };
    let place = Place::new();
    let arguments = [
        "--plan", "--rate", "1000", "--size", "64", "--for", "10", "--json",
    ];
    let fits = run(&mut place.loss_in_folder(&arguments), LIMIT);
    assert_eq!(fits.status.code(), Some(0), "{}", fits.stderr);
    let reported = answer(&fits);
    assert_eq!(
        (&reported["kind"], &reported["fits"]),
        (&"loss_plan".into(), &true.into())
    );
    assert_eq!(reported["ring_needed"], 128 << 10);
    place.has_nothing_new();
}

/// A billion bits' worth of short frames in a nanosecond each fit nowhere.
#[test]
fn a_sweep_predicts_later() {
    let Some(_lock) = alone(MEASURES) else { return };
    let folder = files::folder();
    let file = folder.path().join("loss.json");
    std::fs::write(&file, &quick().0.stdout).expect("write the sweep");
    let file = file.to_str().expect("UTF-8");
    let plan = |rate, more: &[&str]| {
        let load = ["--plan", "--rate", rate, "--size", "512", "--for", "1h"];
        let mut command = loss(&load);
        run(command.args(["--from", file]).args(more), LIMIT)
    };
    let text = plan("1000", &[]);
    assert_eq!(text.status.code(), Some(0), "{}", text.stderr);
    assert!(
        text.stdout.contains("it fits: nothing is lost"),
        "{}",
        text.stdout
    );
    let reported = answer(&plan("1000", &["--json"]));
    assert_eq!(reported["file_bytes"], 3.6e6 * 544.0);
    fails(
        &plan("1000", &["--clock", "tai"]),
        &["it has none with tai"],
    );

    let too_many = plan("900Mpps", &["--json"]);
    assert_eq!(too_many.status.code(), Some(1), "{}", too_many.stderr);
    let reported = answer(&too_many);
    assert_eq!(reported["fits"], false);
    assert!(reported["ring_needed"].is_null(), "{reported}");
    // Before the program or in the ring: what turning a frame away costs decides.
    let lost = |place: &str| reported[place].as_f64().expect("a share");
    assert!(
        lost("lost_before") + lost("lost_in_ring") > 0.5,
        "{reported}"
    );
}
