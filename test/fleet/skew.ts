/** Loaded into a worker before its program: the clock of its machine is wrong by SKEW_MS. */
const real = Date.now;
Date.now = () => real() + Number(process.env.SKEW_MS);
