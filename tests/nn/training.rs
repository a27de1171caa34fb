//! Small models that learn.

use selvedge::nn::{
    Adam, AdamW, CrossEntropyOptions, Initializer, LearningRateSchedule, Linear, Module, Optimizer,
    Reduction, Relu, ScheduleShape, Sequential, Tanh, Variable, clip_grad_norm, cross_entropy, mse_loss,
    no_grad,
};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Tensor};

use super::common::repository;

#[test]
fn a_small_network_learns_xor() {
    let device = Device::cpu();
    let x = Tensor::new([[0.0f32, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], &device).unwrap();
    let y = Tensor::new([[0.0f32], [1.0], [1.0], [0.0]], &device).unwrap();
    let (x, y) = (Variable::new(x), Variable::new(y));
    for seed in 0..3 {
        let initializer = Initializer::new(&device).with_seed(seed);
        let model = Sequential::new()
            .with(Linear::new(2, 8, &initializer).unwrap())
            .with(Tanh)
            .with(Linear::new(8, 1, &initializer).unwrap());
        let mut optimizer = Adam::new(model.parameters(), 0.05).unwrap();
        for _ in 0..200 {
            optimizer.zero_grad();
            mse_loss(&model.forward(&x).unwrap(), &y, Reduction::Mean).unwrap().backward().unwrap();
            optimizer.step().unwrap();
        }
        let found: Vec<f32> = no_grad(|| model.forward(&x)).unwrap().tensor().to_vec().unwrap();
        let is_right = found.iter().zip([0.0, 1.0, 1.0, 0.0]).all(|(a, b)| (a - b).abs() < 0.1);
        assert!(is_right, "seed {seed}: {found:?}");
    }
}

/// Points of spirals of three arms, with the number of each point's arm.
fn spirals(count: usize, shift: f64) -> (Variable, Tensor) {
    let (mut points, mut arms) = (Vec::new(), Vec::new());
    for arm in 0..3 {
        for place in 0..count {
            let radius = (place as f64 + shift) / count as f64;
            let angle = 4.0 * radius + 2.0 * std::f64::consts::PI / 3.0 * f64::from(arm);
            points.extend([(radius * angle.sin()) as f32, (radius * angle.cos()) as f32]);
            arms.push(i64::from(arm));
        }
    }
    let points = Tensor::from_slice(&points, &[3 * count, 2], &Device::cpu()).unwrap();
    (Variable::new(points), Tensor::from_slice(&arms, &[3 * count], &Device::cpu()).unwrap())
}

#[test]
fn a_classifier_of_spirals_is_right_for_95_percent_of_new_points() {
    let (points, arms) = spirals(60, 0.5);
    let initializer = Initializer::new(&Device::cpu()).with_seed(4);
    let model = Sequential::new()
        .with(Linear::new(2, 32, &initializer).unwrap())
        .with(Relu)
        .with(Linear::new(32, 32, &initializer).unwrap())
        .with(Relu)
        .with(Linear::new(32, 3, &initializer).unwrap());
    let mut optimizer = AdamW::new(model.parameters(), 0.02).unwrap();
    let schedule = LearningRateSchedule {
        shape: ScheduleShape::Cosine,
        peak: 0.02,
        minimum: 0.001,
        warmup_steps: 10,
        total_steps: 150,
    };
    for step in 0..150 {
        optimizer.set_learning_rate(schedule.learning_rate(step));
        optimizer.zero_grad();
        let logits = model.forward(&points).unwrap();
        cross_entropy(&logits, &arms, CrossEntropyOptions::default()).unwrap().backward().unwrap();
        clip_grad_norm(optimizer.parameters(), 1.0).unwrap();
        optimizer.step().unwrap();
    }
    let (others, arms) = spirals(60, 0.9);
    let logits = no_grad(|| model.forward(&others)).unwrap().tensor();
    let is_right = logits.argmax(1).unwrap().eq(&arms).unwrap().to_vec::<bool>().unwrap();
    let right = is_right.iter().filter(|&&is_right| is_right).count();
    assert!(right * 100 >= 95 * is_right.len(), "{right} of {} are right", is_right.len());
}

#[test]
fn a_classifier_of_digits_is_right_for_93_percent_of_unseen_images() {
    let device = Device::cpu();
    let arrays = Tensor::read_npz(repository().join("data/digits/digits.npz"), &device).unwrap();
    let array = |name: &str| &arrays.iter().find(|(found, _)| found == name).unwrap().1;
    let images = (array("images").cast(DType::F32).unwrap() / 16.0).unwrap().reshape(&[1797, 64]).unwrap();
    let labels = array("labels").cast(DType::I64).unwrap();
    let initializer = Initializer::new(&device).with_seed(7);
    let generator = Generator::new(7);
    let of_images = |ids: &Tensor| Variable::new(images.index_select(0, ids).unwrap());
    let of_labels = |ids: &Tensor| labels.index_select(0, ids).unwrap();
    let (training, unseen) = {
        let ids = generator.permutation(1797, &device).unwrap();
        (ids.narrow(0, 0, 1440).unwrap(), ids.narrow(0, 1440, 357).unwrap())
    };
    let model = Sequential::new()
        .with(Linear::new(64, 32, &initializer).unwrap())
        .with(Relu)
        .with(Linear::new(32, 10, &initializer).unwrap());
    let mut optimizer = AdamW::new(model.parameters(), 0.01).unwrap();
    for _ in 0..8 {
        let order = generator.permutation(1440, &device).unwrap();
        for start in (0..1440).step_by(96) {
            let batch = training.index_select(0, &order.narrow(0, start, 96).unwrap()).unwrap();
            let logits = model.forward(&of_images(&batch)).unwrap();
            let loss = cross_entropy(&logits, &of_labels(&batch), CrossEntropyOptions::default()).unwrap();
            optimizer.zero_grad();
            loss.backward().unwrap();
            optimizer.step().unwrap();
        }
    }
    let logits = no_grad(|| model.forward(&of_images(&unseen))).unwrap().tensor();
    let is_right = logits.argmax(1).unwrap().eq(&of_labels(&unseen)).unwrap().to_vec::<bool>().unwrap();
    let right = is_right.iter().filter(|&&is_right| is_right).count();
    assert!(right * 100 >= 93 * is_right.len(), "{right} of {} are right", is_right.len());
}
