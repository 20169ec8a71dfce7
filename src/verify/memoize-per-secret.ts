/**
 * Memoizes values that are derived from the secrets of a channel. Channels share verifiers, so a verifier must not retain
 * secrets. The results are therefore cached by the identity of the array of secrets.
 *
 * @returns a function that maps an array of secrets to derived values. Values are derived again for an equal but different
 *   array
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
