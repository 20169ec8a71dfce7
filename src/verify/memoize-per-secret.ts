/**
 * Memoizes values derived from a channel's secrets. Verifiers are shared between channels and must not retain secrets, so results
 * are cached per secrets array, by identity.
 *
 * @returns a function that maps an array of secrets to the derived values; an equal but different array is derived again
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
