use kiln_checker::*;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let h = kiln_history::History::load(std::path::Path::new(&path)).unwrap();
    let b = kiln_platform::time::now_ns();
    let strict = std::env::args().nth(2).is_none();
    let mut o = Options::default(); o.order = if strict { Order::Strict } else { Order::Serializable };
    match check(&h, &o) { Ok(r) => println!("{r}"), Err(e) => println!("{e}") }
    println!("{:.2} s", (kiln_platform::time::now_ns() - b) as f64 / 1e9);
}
