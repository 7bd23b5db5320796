//! Small shares for layers of FALCON as published: integers that add up to the values, which
//! leak, instead of shares mod a power of two.

use mpc::Share;
use mpc::linear::falcon::Small;
use wire::{Cost, Result};

use crate::step::context::{Context, input};
use crate::step::linear::LinearProtocol;
use crate::step::spent::Spent;

/// Makes shares small; without a plan they are what the client knows, and the server's are zero.
#[derive(Debug)]
pub struct SmallShares(pub Option<Small>);

impl LinearProtocol for SmallShares {
    fn operator(&self) -> &'static str {
        "small shares"
    }

    fn describe(&self) -> String {
        match self.0 {
            Some(_) => "masks of a few bits, which leak".into(),
            None => "local".into(),
        }
    }

    fn spent(&self) -> Spent {
        Spent::sending(self.0.as_ref().map_or(Cost::NONE, Small::cost))
    }

    fn run(&self, cx: &mut Context<'_, '_>, inputs: Vec<Share>) -> Result<Share> {
        match &self.0 {
            Some(small) => small.run(cx.channel, input(&inputs, 0)?, cx.rng),
            None => Ok(Small::known(input(&inputs, 0)?)),
        }
    }
}
