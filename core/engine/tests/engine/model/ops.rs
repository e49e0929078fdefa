use std::sync::Arc;

use fastrand::Rng;
use windrow_engine::{Insert, Shape, Ticket, Withdrawal};

use super::oracle::{check, Seen};
use super::weather::{Weather, ROWS_PER_INSERT};
use crate::support::{Gate, Told, World, PASSTHROUGH};

#[derive(Debug, Clone, Copy)]
enum Op {
    Push {
        shape: usize,
        waits: bool,
    },
    Withdraw,
    Flush,
    /// Waits until the sink has answered one more call, or all is stored.
    AwaitACall,
    CloseGate,
    OpenGate,
    Weather {
        faults_per_hundred: u32,
    },
    Yield,
}

impl Op {
    fn random(random: &mut Rng) -> Op {
        match random.u32(0..40) {
            0..=23 => Op::Push { shape: random.usize(0..SHAPES), waits: random.u32(0..3) > 0 },
            24..=27 => Op::Withdraw,
            28 => Op::Flush,
            29..=31 => Op::AwaitACall,
            32 => Op::CloseGate,
            33 | 34 => Op::OpenGate,
            35 => Op::Weather { faults_per_hundred: random.u32(0..80) },
            _ => Op::Yield,
        }
    }
}

const SHAPES: usize = 4;
const WRITERS: u64 = 3;

/// An insert, and its fate as its sender knows it.
pub struct Sent {
    pub shape: Arc<Shape>,
    pub rows: Vec<u64>,
    pub writer: u64,
    pub fate: Fate,
}

pub enum Fate {
    /// The insert was left: its sender does not wait.
    Left,
    Waiting(Ticket),
    Told(Result<(), Told>),
    /// The insert was taken back when the sink had seen this many calls.
    TakenBack {
        calls: usize,
    },
    /// The insert's sender gave up while the insert was on its way.
    LetGo,
}

pub struct Run {
    world: World,
    random: Rng,
    weather: Weather,
    shapes: Vec<Arc<Shape>>,
    sent: Vec<Sent>,
}

impl Run {
    pub async fn of(seed: u64) -> Seen {
        let mut run = Run::new(seed);
        for _ in 0..run.random.usize(20..120) {
            let op = Op::random(&mut run.random);
            run.apply(op).await;
        }
        run.finish(seed).await
    }

    fn new(seed: u64) -> Run {
        let mut random = Rng::with_seed(seed);
        let (world, weather) = (World::sealing_at(random.u64(1..=9)), Weather::default());
        weather.set(random.u32(0..50));
        world.sink.answer(weather.script(seed));
        let shapes = vec![
            world.shape("one", "a"),
            world.shape("one", PASSTHROUGH),
            world.deduplicating_shape("one"),
            world.deduplicating_shape("two"),
        ];
        Run { world, random, weather, shapes, sent: Vec::new() }
    }

    async fn apply(&mut self, op: Op) {
        match op {
            Op::Push { shape, waits } => self.push(shape, waits).await,
            Op::Withdraw => self.withdraw().await,
            Op::Flush => {
                self.world.sink.open_gate();
                self.world.flush().await;
            }
            Op::AwaitACall => {
                self.world.sink.open_gate();
                let ended = self.world.sink.calls().iter().filter(|call| call.answer.is_some()).count();
                tokio::select! {
                    () = self.world.flush() => {}
                    () = self.world.sink.ended(ended + 1) => {}
                }
            }
            Op::CloseGate => self.world.sink.set_gate(Gate::Closed),
            Op::OpenGate => self.world.sink.open_gate(),
            Op::Weather { faults_per_hundred } => self.weather.set(faults_per_hundred),
            Op::Yield => tokio::task::yield_now().await,
        }
    }

    async fn push(&mut self, shape: usize, waits: bool) {
        let first = ROWS_PER_INSERT * self.sent.len() as u64;
        let rows: Vec<u64> = (first..first + self.random.u64(1..ROWS_PER_INSERT)).collect();
        let shape = self.shapes[shape].clone();
        let writer = self.random.u64(0..WRITERS);
        let insert = Insert { writer, ..self.world.insert(&shape, &rows, waits) };
        let pushed = self.world.gatherer.push(&shape, insert).await.expect("there is room");
        assert_eq!(pushed.is_some(), waits);
        let fate = pushed.map_or(Fate::Left, Fate::Waiting);
        self.sent.push(Sent { shape, rows, writer, fate });
    }

    async fn withdraw(&mut self) {
        let mut waiting: Vec<&mut Sent> =
            self.sent.iter_mut().filter(|sent| matches!(sent.fate, Fate::Waiting(_))).collect();
        if waiting.is_empty() {
            return;
        }
        let chosen = self.random.usize(0..waiting.len());
        let fate = &mut waiting[chosen].fate;
        if let Fate::Waiting(ticket) = std::mem::replace(fate, Fate::LetGo) {
            *fate = match ticket.withdraw().await {
                Withdrawal::Withdrawn { .. } => Fate::TakenBack { calls: self.world.sink.call_count() },
                Withdrawal::InFlight => Fate::LetGo,
                Withdrawal::Done(outcome) => Fate::Told(outcome.map_err(Told::from)),
            };
        }
    }

    /// Ends a run: half of the runs end with the faults they had, the others with a sink that does its best.
    async fn finish(mut self, seed: u64) -> Seen {
        if self.random.bool() {
            self.weather.set(0);
        }
        self.world.sink.open_gate();
        self.world.gatherer.shut_down(std::time::Duration::from_secs(600)).await;
        for sent in &mut self.sent {
            if let Fate::Waiting(ticket) = &mut sent.fate {
                let outcome = ticket.outcome().await;
                sent.fate = Fate::Told(outcome.map_err(Told::from));
            }
        }
        check(seed, &self.world, &self.sent)
    }
}
