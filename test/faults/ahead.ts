/** Preloaded into a gateway: its clock on the wall is so many milliseconds ahead, or behind, as `CLOCK_AHEAD_MS` says. */
const aheadMs = Number(process.env.CLOCK_AHEAD_MS);
const RealDate = Date;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, self) =>
    Reflect.construct(target, args.length === 0 ? [target.now() + aheadMs] : args, self),
  apply: (target) => new target(target.now() + aheadMs).toString(),
  get: (target, key) => (key === "now" ? () => target.now() + aheadMs : Reflect.get(target, key)),
});
