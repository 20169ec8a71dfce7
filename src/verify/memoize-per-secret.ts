/**
 * Memoizes values derived from a channel's secrets. Channels share verifiers, which must not retain secrets, so results are
 * cached by the identity of the secrets array.
 *
 * @returns a function that maps an array of secrets to derived values. An equal but different array is not a cache hit
 */
export function memoizePerSecret<T>(
  make: (secret: string) => T,
): (secrets: readonly string[]) => readonly T[] {
  const known = new WeakMap<readonly string[], readonly T[]>();
  return (secrets) => {
    let made = known.get(secrets);
    if (made === undefined) {
      made = secrets.map(make);
      known.set(secrets, made);
    }
    return made;
  };
}
