//! A value for each direction.

use std::ops::{AddAssign, Index, IndexMut};

use tscap_common::hook::Direction;

/// What frames that were received, and what those that were sent, have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directed<T>([T; 2]);

impl<T> Directed<T> {
    /// By what gives the value of a direction.
    pub fn by(value: impl FnMut(Direction) -> T) -> Self {
        Self(Direction::ALL.map(value))
    }
}

impl<T: Default> Directed<T> {
    /// Nothing was sent.
    pub fn received(value: T) -> Self {
        Self([value, T::default()])
    }
}

impl<T: Default> Directed<T> {
    /// Nothing was received.
    pub fn sent(value: T) -> Self {
        Self([T::default(), value])
    }
}

impl<T: Copy + Default + AddAssign> Directed<T> {
    /// Both together.
    pub fn sum(&self) -> T {
        let [mut sum, sent] = self.0;
        sum += sent;
        sum
    }
}

impl<T> Index<Direction> for Directed<T> {
    type Output = T;

    fn index(&self, direction: Direction) -> &T {
        &self.0[direction as usize]
    }
}

impl<T> IndexMut<Direction> for Directed<T> {
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        &mut self.0[direction as usize]
    }
}

impl<T: Copy + AddAssign> AddAssign for Directed<T> {
    fn add_assign(&mut self, other: Self) {
        for direction in Direction::ALL {
            self[direction] += other[direction];
        }
    }
}
