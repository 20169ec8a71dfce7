/**
 * Values that are equal for all who ask under the same key: made by the first, shared by the others, and forgotten once nobody holds
 * them. What `make` throws is thrown on, and nothing is kept.
 */
export function createInterned<V extends object>(): (key: string, make: () => V) => V {
  const known = new Map<string, WeakRef<V>>();
  const gone = new FinalizationRegistry<string>((key) => {
    // Another may have been made since.
    if (known.get(key)?.deref() === undefined) known.delete(key);
  });
  return (key, make) => {
    const held = known.get(key)?.deref();
    if (held !== undefined) return held;
    const made = make();
    known.set(key, new WeakRef(made));
    gone.register(made, key);
    return made;
  };
}
