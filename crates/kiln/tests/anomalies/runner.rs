//! Runs a script against a subject, and says whether what came of it could have come of the
//! transactions one after the other.

use kiln::{Protocol, SqlState};

use crate::script::{Condition, Label, Script};
use crate::sessions::Sessions;
use crate::subject::{Answer, Client, Subject};

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Committed,
    /// By its own wish.
    RolledBack,
    /// Because of a conflict; it may be started again.
    Conflict,
    /// Because of an error that has nothing to do with the others.
    Rejected,
}

/// Something that happened.
pub enum Event {
    /// A session answered a step, and whether the step had to wait for that.
    Answered(usize, bool),
    /// A step waits for another transaction.
    Waits(usize),
    /// A step was issued while its session waited.
    Queued(usize),
}

/// What came of a script.
pub struct Run {
    pub events: Vec<Event>,
    /// The answer to each step.
    pub answers: Vec<Answer>,
    /// The end of each transaction.
    pub ends: Vec<End>,
    /// The rows of the final query.
    pub final_rows: Vec<String>,
    /// The transactions in an order in which they could have run one after the other, if there is
    /// one; those without effects and errors are not among them.
    pub order: Option<Vec<usize>>,
}

/// Runs a script.
///
/// # Errors
/// What went so wrong that there is nothing to judge.
pub fn run(script: &Script, subject: Subject) -> Result<Run, String> {
    let database = subject.open();
    database
        .execute(&script.setup)
        .map_err(|error| format!("the setup fails: {error}"))?;
    let clients = script.transactions.iter();
    let sessions = Sessions::start(clients.map(|_| subject.connect(&database)).collect());
    let mut progress = Progress::new(script);
    for (step, content) in script.steps.iter().enumerate() {
        let session = content.transaction;
        let behind = sessions.is_behind(session);
        progress.issue(step, session);
        let is_last = script.steps_of(session).last() == Some((step, content.sql.as_str()));
        sessions.issue(session, step, &content.sql, is_last);
        if behind {
            progress.events.push(Event::Queued(step));
        }
        for answered in sessions.await_answers(session)? {
            progress.answer(answered.step, answered.session, answered.answer);
        }
        if !behind && let Some(waiting) = sessions.running(session) {
            progress.waiting.push(waiting);
            progress.events.push(Event::Waits(waiting));
        }
    }
    if let Some(step) = progress.answers.iter().position(Option::is_none) {
        return Err(format!(
            "step {step} waits when no session is left to wait for"
        ));
    }
    drop(sessions);
    let answers: Vec<Answer> = progress.answers.into_iter().flatten().collect();
    let ends: Vec<End> = (0..script.transactions.len())
        .map(|transaction| end_of(script, transaction, &answers))
        .collect();
    let final_rows = final_rows(script, &mut subject.connect(&database))?;
    // A transaction that met a conflict and starts again, now alone, must get through: no
    // transaction may have left anything locked.
    for (transaction, _) in ends
        .iter()
        .enumerate()
        .filter(|(_, end)| **end == End::Conflict)
    {
        let mut client = subject.connect(&database);
        for (_, sql) in script.steps_of(transaction) {
            if let Answer::Refused { state, detail } = client.run(sql)
                && state == SqlState::SERIALIZATION_FAILURE
            {
                let name = &script.transactions[transaction];
                return Err(format!(
                    "{name}, started again and alone, ends in: {detail}"
                ));
            }
        }
    }
    let mut run = Run {
        events: progress.events,
        answers,
        ends,
        final_rows,
        order: None,
    };
    let in_time = match subject.is_strict() {
        true => Some((&*progress.began, &*progress.ended)),
        false => None,
    };
    run.order = serial_order(script, &run, in_time)?;
    Ok(run)
}

/// What has happened so far.
struct Progress {
    events: Vec<Event>,
    answers: Vec<Option<Answer>>,
    waiting: Vec<usize>,
    /// When the first step of each transaction was issued, and when its last was answered: numbers
    /// of steps issued.
    began: Vec<usize>,
    ended: Vec<usize>,
    issued: usize,
}

impl Progress {
    fn new(script: &Script) -> Progress {
        let transactions = script.transactions.len();
        Progress {
            events: Vec::new(),
            answers: script.steps.iter().map(|_| None).collect(),
            waiting: Vec::new(),
            began: vec![usize::MAX; transactions],
            ended: vec![0; transactions],
            issued: 0,
        }
    }

    fn issue(&mut self, step: usize, session: usize) {
        self.issued = step + 1;
        self.began[session] = self.began[session].min(self.issued);
    }

    fn answer(&mut self, step: usize, session: usize, answer: Answer) {
        let waited = self.waiting.contains(&step);
        self.events.push(Event::Answered(step, waited));
        self.answers[step] = Some(answer);
        self.ended[session] = self.issued;
    }
}

fn end_of(script: &Script, transaction: usize, answers: &[Answer]) -> End {
    let mut last = None;
    for (step, _) in script.steps_of(transaction) {
        if let Answer::Refused { state, .. } = &answers[step] {
            return match *state == SqlState::SERIALIZATION_FAILURE {
                true => End::Conflict,
                false => End::Rejected,
            };
        }
        last = Some(&answers[step]);
    }
    match last {
        Some(Answer::Done(tag)) if tag == "ROLLBACK" => End::RolledBack,
        _ => End::Committed,
    }
}

fn final_rows(script: &Script, client: &mut Client) -> Result<Vec<String>, String> {
    match client.run(&script.final_query) {
        Answer::Rows(rows) => Ok(rows),
        other => Err(format!("the final query answers {other:?}")),
    }
}

/// Finds an order in which the transactions, one after the other in an empty database, give the
/// same answers and leave the same rows. If `times` (see [`Progress`]) are given, a transaction
/// that ended before another began comes before it. Transactions that were rolled back or met a
/// conflict have no effects and need no place; no client relies on what they had read.
fn serial_order(
    script: &Script,
    run: &Run,
    times: Option<(&[usize], &[usize])>,
) -> Result<Option<Vec<usize>>, String> {
    let placed: Vec<usize> = (0..run.ends.len())
        .filter(|&transaction| matches!(run.ends[transaction], End::Committed | End::Rejected))
        .collect();
    for order in permutations(&placed) {
        let in_time = order.iter().enumerate().all(|(position, &later)| {
            let after = &order[position + 1..];
            times.is_none_or(|(began, ended)| {
                after.iter().all(|&other| ended[other] >= began[later])
            })
        });
        if in_time && explains(script, run, &order)? {
            return Ok(Some(order));
        }
    }
    Ok(None)
}

fn explains(script: &Script, run: &Run, order: &[usize]) -> Result<bool, String> {
    let reference = Subject::Protocol(Protocol::Serial.into());
    let database = reference.open();
    database
        .execute(&script.setup)
        .map_err(|error| format!("the setup fails: {error}"))?;
    for &transaction in order {
        let mut client = reference.connect(&database);
        for (step, sql) in script.steps_of(transaction) {
            if !client.run(sql).agrees_with(&run.answers[step]) {
                return Ok(false);
            }
        }
    }
    let rows = final_rows(script, &mut reference.connect(&database))?;
    Ok(rows == run.final_rows)
}

/// All orders of some items, the given one first.
fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (position, &item) in items.iter().enumerate() {
        let mut others = items.to_vec();
        others.remove(position);
        for mut rest in permutations(&others) {
            rest.insert(0, item);
            all.push(rest);
        }
    }
    all
}

impl Run {
    /// The line of conditions that all hold, if there is one: the anomaly happened.
    pub fn anomaly<'a>(&self, script: &'a Script) -> Option<&'a [Condition]> {
        let lines = script.anomaly_when.iter();
        lines
            .map(Vec::as_slice)
            .find(|all| all.iter().all(|condition| self.holds(condition)))
    }

    fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Committed(transaction) => self.ends[*transaction] == End::Committed,
            Condition::Rejected(transaction) => self.ends[*transaction] == End::Rejected,
            Condition::Equals(label, rows) => self.rows(*label) == Some(rows),
            Condition::Contains(label, row) => {
                self.rows(*label).is_some_and(|rows| rows.contains(row))
            }
            Condition::Differ(one, other) => match (self.rows(*one), self.rows(*other)) {
                (Some(one), Some(other)) => one != other,
                _ => false,
            },
        }
    }

    fn rows(&self, label: Label) -> Option<&[String]> {
        match label {
            Label::Step(step) => self.answers[step].rows(),
            Label::Final => Some(&self.final_rows),
        }
    }

    /// What is wrong with the run: nothing, if the subject serializes transactions.
    pub fn complaints(&self, script: &Script) -> Vec<String> {
        let mut complaints = Vec::new();
        if let Some(conditions) = self.anomaly(script) {
            complaints.push(format!("{} happened: {conditions:?}", script.anomaly));
        }
        if self.order.is_none() {
            complaints.push("no serial order explains the answers and the final rows".to_owned());
        }
        let committed = self.ends.iter().filter(|end| **end == End::Committed);
        let committed = committed.count();
        if committed < script.commits_min {
            let least = script.commits_min;
            complaints.push(format!(
                "{committed} transactions committed, not {least} or more"
            ));
        }
        complaints
    }
}

#[test]
fn orders_are_all_tried() {
    assert_eq!(permutations(&[]), [Vec::<usize>::new()]);
    let mut all = permutations(&[4, 5, 6]);
    assert_eq!(all[0], [4, 5, 6]);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 6);
}
