//! The store on a real disk.

#![cfg(test)]

mod bounds;
mod broken;
mod common;
mod folders;
mod full;
mod heads;
mod lookups;
mod onlooker;
mod slices;
mod upkeep;
