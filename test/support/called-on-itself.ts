/** The same object, whose functions refuse to be called apart from it, as the methods of a class do. */
export function calledOnItself<T extends object>(object: T): T {
  const members = Object.entries(object).map(([name, member]): [string, unknown] => [
    name,
    typeof member === "function" ? methodOf(name, member) : member,
  ]);
  const whole = Object.fromEntries(members) as T;

  function methodOf(name: string, member: (...args: unknown[]) => unknown) {
    return function (this: unknown, ...args: unknown[]): unknown {
      if (this !== whole) throw new TypeError(`${name} was called apart from its object`);
      return member(...args);
    };
  }
  return whole;
}
