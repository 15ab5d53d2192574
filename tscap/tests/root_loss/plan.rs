//! `--plan`, measured here and from an earlier sweep.

use serde_json::Value;

use crate::support::command::{Done, run};
use crate::support::files;
use crate::support::root::root;
use crate::{LIMIT, Place, fails, loss};

fn answer(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
}

/// Whatever the machine, some frames a second fit and a billion bits' worth of short
/// ones in a nanosecond each do not.
#[test]
fn the_exit_code_tells_whether_it_fits() {
    let Some(_turn) = root("the_exit_code_tells_whether_it_fits") else {
        return;
    };
    let place = Place::new();
    let plan = |rate| {
        let arguments = [
            "--plan", "--rate", rate, "--size", "64", "--for", "10", "--json",
        ];
        run(&mut place.loss_in_folder(&arguments), LIMIT)
    };
    let fits = plan("1000");
    assert_eq!(fits.status.code(), Some(0), "{}", fits.stderr);
    let told = answer(&fits);
    assert_eq!(
        (&told["kind"], &told["fits"]),
        (&"loss_plan".into(), &true.into())
    );
    assert_eq!(told["ring_needed"], 128 << 10);
    let too_many = plan("900Mpps");
    assert_eq!(too_many.status.code(), Some(1), "{}", too_many.stderr);
    let told = answer(&too_many);
    assert_eq!(told["fits"], false);
    assert!(told["ring_needed"].is_null(), "{told}");
    // Where they are lost depends on what a frame costs that finds no room in the ring.
    let lost = ["lost_before", "lost_in_ring"].map(|name| told[name].as_f64());
    assert!(lost.into_iter().flatten().sum::<f64>() > 0.5, "{told}");
    place.has_nothing_new();
}

#[test]
fn a_sweep_foretells_later() {
    let Some(_turn) = root("a_sweep_foretells_later") else {
        return;
    };
    let folder = files::folder();
    let file = folder.path().join("loss.json");
    let swept = run(&mut loss(&["--quick", "--json", "--size", "64"]), LIMIT);
    std::fs::write(&file, &swept.stdout).expect("write the sweep");
    let file = file.to_str().expect("UTF-8");
    let plan = |more: &[&str]| {
        let load = ["--plan", "--rate", "1000", "--size", "512", "--for", "1h"];
        let mut command = loss(&load);
        run(command.args(["--from", file]).args(more), LIMIT)
    };
    let text = plan(&[]);
    assert_eq!(text.status.code(), Some(0), "{}", text.stderr);
    assert!(
        text.stdout.contains("it fits: nothing is lost"),
        "{}",
        text.stdout
    );
    assert_eq!(answer(&plan(&["--json"]))["file_bytes"], 3.6e6 * 544.0);
    fails(&plan(&["--clock", "tai"]), &["it has none with tai"]);
}
