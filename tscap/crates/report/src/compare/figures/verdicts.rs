//! The intervals of the verdicts.

use super::Figure;
use crate::compare::tables;
use crate::compare::words::{short, stamp};
use tscap_document::chart::{Axis, Interval, Scale, intervals, quoted};
use tscap_lab::compare::schema::Comparison;

/// Intervals of the verdicts that have one.
pub(crate) fn verdicts(comparison: &Comparison) -> Option<Figure> {
    let rows = comparison.verdicts.iter().filter_map(|verdict| {
        let mut subjects = comparison.subjects.iter();
        Some(Interval {
            name: format!(
                "{}, {}",
                stamp(verdict.source, &verdict.path),
                short(verdict.metric)
            ),
            style: subjects
                .position(|subject| {
                    stamp(subject.source, &subject.path) == stamp(verdict.source, &verdict.path)
                })
                .unwrap_or(0),
            value: verdict.over_ktime.ratio?,
            interval: verdict.over_ktime.interval?,
            bar: None,
            shaded: Some((1.0, verdict.over_ktime.margin)),
        })
    });
    let figure = of_intervals(
        "verdicts",
        "Cost over that of ktime".to_owned(),
        "For each stamp and cost the ratio to that of ktime with its 99 % interval; the table below \
         has each.",
        rows.collect(),
    )?;
    Some(figure.beside(tables::verdicts(comparison)))
}

/// Intervals of ratios; `None` of none.
pub(crate) fn of_intervals(
    id: &'static str,
    title: String,
    description: &'static str,
    rows: Vec<Interval>,
) -> Option<Figure> {
    let csv = rows.iter().map(|row| {
        let [low, high] = row.interval;
        let (_, margin) = row.shaded.unwrap_or_default();
        format!(
            "{},{},{low},{high},{margin}\n",
            quoted(&row.name),
            row.value
        )
    });
    let csv: String = csv.collect();
    let ends = rows.iter().flat_map(|row| {
        let shaded = row.shaded.into_iter();
        let shaded = shaded.flat_map(|(middle, by)| [middle - by, middle + by]);
        row.interval.into_iter().chain([row.value]).chain(shaded)
    });
    let x = Axis::over("ratio", Scale::Linear, ends);
    (!rows.is_empty()).then(|| {
        let csv = format!("cost,ratio,low,high,margin\n{csv}");
        let note = "shaded: the margin, in which costs are equal for all purposes".to_owned();
        let named = title.clone();
        Figure::drawn(id, title, vec![note], move || {
            let chart = intervals(id, &named, description, &x, &rows);
            (chart, csv.clone())
        })
    })
}
