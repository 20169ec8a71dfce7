/** Preloaded into a gateway. Shifts its wall clock by `CLOCK_AHEAD_MS` milliseconds; negative values set it back. */
const aheadMs = Number(process.env.CLOCK_AHEAD_MS);
const RealDate = Date;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, self) =>
    Reflect.construct(target, args.length === 0 ? [target.now() + aheadMs] : args, self),
  apply: (target) => new target(target.now() + aheadMs).toString(),
  get: (target, key) => (key === "now" ? () => target.now() + aheadMs : Reflect.get(target, key)),
});
