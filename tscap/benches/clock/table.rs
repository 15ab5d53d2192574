//! The report for people.

use crate::Report;
use crate::common::table::{heading, machine, row, show, text};
use crate::common::target::Target;
use crate::host::Host;
use crate::simulation::{Both, Simulation};

/// The whole report, the targets first.
pub fn render(report: &Report) -> String {
    let mut lines = machine(&report.header.machine);
    lines.push(String::new());
    lines.extend(report.targets.iter().map(Target::row));
    lines.extend(report.simulation.iter().flat_map(simulation));
    lines.extend(report.host.iter().flat_map(host));
    text(&lines)
}

fn simulation(report: &Simulation) -> Vec<String> {
    let title = format!(
        "simulated: error against true time, µs; {} random series",
        report.rounds
    );
    let columns = ["IQR", "of the servo", "median", "of the servo"];
    let mut lines = heading(title, "", &columns).to_vec();
    for scenario in &report.scenarios {
        let figures = [
            show(&scenario.feed_forward_iqr_us, 1),
            show(&scenario.servo_iqr_us, 1),
            show(&scenario.feed_forward_median_us, 1),
            show(&scenario.servo_median_us, 1),
        ];
        lines.push(row(scenario.name, &figures));
    }
    let columns = ["feed-forward", "the servo"];
    let title = "samples until it stays within 50 µs for a minute".into();
    lines.extend(heading(title, "", &columns));
    let both = |name, of: &Both| row(name, &[show(&of.feed_forward, 0), show(&of.servo, 0)]);
    lines.extend([
        both("from the start", &report.settled),
        both("from the start, congestion", &report.settled_congested),
        both("after a step of 1 s", &report.stepped),
        both("after a slew of 500 ppm for 100 s", &report.slewed),
        both("after 2 h without the reference", &report.back),
        both(
            "off meanwhile in that slew, median, µs",
            &report.slewed_off_us,
        ),
    ]);
    let bound = show(&report.away_bound_us, 0);
    lines.push(row("bound after these 2 h, µs", &[bound]));
    lines
}

fn host(report: &Host) -> Vec<String> {
    let title = "this host: width of brackets, ns".into();
    let first = report.widths.first();
    let columns = first.iter().flat_map(|it| &it.quantiles_ns);
    let columns: Vec<_> = columns
        .map(|(share, _)| format!("p{}", share * 100.0))
        .collect();
    let columns: Vec<_> = columns.iter().map(String::as_str).collect();
    let mut lines = heading(title, "", &columns).to_vec();
    for widths in &report.widths {
        let figures: Vec<_> = widths
            .quantiles_ns
            .iter()
            .map(|(_, ns)| format!("{ns:.0}"))
            .collect();
        let name = format!("{} ({})", widths.name, widths.brackets);
        lines.push(row(&name, &figures));
    }
    lines.push(row("one sample, CPU ns", &[show(&report.sample_ns, 0)]));
    for widths in &report.widths {
        let name = format!("the same {}, share of a core", widths.name);
        let share = format!("{:.4} %", widths.share_of_core * 100.0);
        lines.push(row(&name, &[share]));
    }
    lines.push(row(
        "conversion of a stamp, CPU ns",
        &[show(&report.conversion_ns, 1)],
    ));
    for (name, cost) in [
        ("call and read of the TSC, CPU ns", &report.called_ns),
        ("the same ordered", &report.called_ordered_ns),
    ] {
        lines.push(row(name, &[show(cost, 1)]));
    }
    lines.push(row(
        "bound when idle, p99, ns",
        &[show(&report.bound_p99_ns, 0)],
    ));
    lines
}
