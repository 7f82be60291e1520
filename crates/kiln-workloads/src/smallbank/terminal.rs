//! Draws the calls of one worker.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::{
    AMALGAMATE, BALANCE, Config, DEPOSIT_CHECKING, PROCEDURES, SEND_PAYMENT, Skew,
    TRANSACT_SAVINGS, WRITE_CHECK,
};
use crate::ArgumentSink;
use crate::audit::Totals;
use crate::definition::{Call, DrawCalls, ProcedureIndex};
use crate::population::decimal;
use crate::random::Ranks;

/// The amounts of H-Store's benchmark, in cents.
const DEPOSIT_CENTS: i64 = 1_30;
const PAYMENT_CENTS: i64 = 5_00;
const SAVINGS_CENTS: i64 = 20_20;
const CHECK_CENTS: i64 = 5_00;

/// The terminal of one worker.
#[derive(Debug)]
pub struct Terminal {
    random: Random,
    accounts: u32,
    choice: Choice,
    totals: Totals,
}

#[derive(Debug)]
enum Choice {
    Ranks(Ranks),
    Hot { accounts: u32, percent: f64 },
}

impl Terminal {
    /// The terminal of worker `worker`, from 0.
    pub fn new(config: &Config, seed: u64, worker: usize) -> Terminal {
        Terminal {
            // Streams of their own: the population has those from 0.
            random: Random::stream(seed, (1 << 32) + worker as u64),
            accounts: config.accounts,
            choice: match config.skew {
                Skew::Zipf { theta } => Choice::Ranks(Ranks::new(config.accounts.into(), theta)),
                Skew::Hot { accounts, percent } => Choice::Hot { accounts, percent },
            },
            totals: Totals::new(PROCEDURES.len()),
        }
    }

    fn customer(&mut self) -> i64 {
        let (random, all) = (&mut self.random, i64::from(self.accounts));
        match &self.choice {
            Choice::Ranks(ranks) => ranks.next(random),
            Choice::Hot { accounts, percent } if random.percent(*percent) => {
                random.between(1, i64::from(*accounts))
            }
            Choice::Hot { accounts, .. } => random.between(i64::from(*accounts) + 1, all),
        }
    }

    /// A customer other than `customer`.
    fn other_customer(&mut self, customer: i64) -> i64 {
        // A very skewed choice could return the same one for a long time: after a few attempts
        // the neighbour will do.
        for _ in 0..8 {
            let other = self.customer();
            if other != customer {
                return other;
            }
        }
        if customer < i64::from(self.accounts) {
            customer + 1
        } else {
            1
        }
    }

    fn draw_procedure(&mut self) -> ProcedureIndex {
        match self.random.below(100) {
            0..15 => AMALGAMATE,
            15..30 => BALANCE,
            30..45 => DEPOSIT_CHECKING,
            45..70 => SEND_PAYMENT,
            70..85 => TRANSACT_SAVINGS,
            _ => WRITE_CHECK,
        }
    }
}

impl DrawCalls for Terminal {
    fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        arguments.clear();
        let procedure = self.draw_procedure();
        let customer = self.customer();
        arguments.push_i64(customer);
        if matches!(procedure, AMALGAMATE | SEND_PAYMENT) {
            let other = self.other_customer(customer);
            arguments.push_i64(other);
        }
        let cents = match procedure {
            DEPOSIT_CHECKING => Some(DEPOSIT_CENTS),
            SEND_PAYMENT => Some(PAYMENT_CENTS),
            TRANSACT_SAVINGS => Some(SAVINGS_CENTS),
            WRITE_CHECK => Some(CHECK_CENTS),
            _ => None,
        };
        if let Some(cents) = cents {
            arguments.push_decimal(decimal(cents, 2));
        }
        Call::immediate(procedure)
    }

    /// Deposits, withdrawals and checks return the change of the bank's total.
    fn committed<R: AsRef<[Value]>>(&mut self, call: Call, rows: &[R]) {
        self.totals.committed[call.procedure.0] += 1;
        if !matches!(
            call.procedure,
            DEPOSIT_CHECKING | TRANSACT_SAVINGS | WRITE_CHECK
        ) {
            return;
        }
        if let Some([Value::Numeric(change), ..]) = rows.first().map(AsRef::as_ref)
            && let Ok(cents) = change.round(2)
        {
            self.totals.money_cents += cents.mantissa();
        }
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }
}
