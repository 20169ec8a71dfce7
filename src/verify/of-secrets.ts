/**
 * What is made of each of a channel's secrets, once for as long as it has them: what verifies is shared by channels with other secrets,
 * and keeps nothing of any.
 *
 * @returns a function of the secrets that are valid now: of the same list, not an equal one, nothing is made again
 */
export function createOfSecrets<T>(
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
