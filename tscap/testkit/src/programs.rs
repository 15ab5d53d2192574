//! The programs that tests start, and the Debian packages that have them.

/// A line for each package: what needs it, its name, its programs. `xtask` installs by the
/// same table.
const TABLE: &str = include_str!("../programs.txt");

/// The package that has `program`; `None` if the table does not know the program.
pub fn package(program: &str) -> Option<&'static str> {
    TABLE.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (tier, package) = (words.next()?, words.next()?);
        let is_of_it = !tier.starts_with('#') && words.any(|word| word == program);
        is_of_it.then_some(package)
    })
}
