import { afterAll, beforeAll } from "vitest";

/**
 * Opens what the tests of a file, or of a `describe`, share: before the first of them, and after the last it is closed. What is
 * opened later is closed sooner. The answer stands for it, as do its members; tests and hooks may use them.
 */
export function opened<T extends object>(open: () => T | Promise<T>): T {
  let current: (T & Partial<AsyncDisposable>) | undefined;
  beforeAll(async () => {
    current = await open();
  });
  afterAll(async () => {
    await current?.[Symbol.asyncDispose]?.();
    // A file stays loaded for as long as its worker; what it has opened does not.
    current = undefined;
  });
  return standIn(() => current);
}

/** Forwards everything to the object, once there is one. */
function standIn<T extends object>(find: () => T | undefined): T {
  const get = (): T => {
    const found = find();
    if (found === undefined) throw new Error("this is opened for tests and hooks, and not before them");
    return found;
  };
  return new Proxy((() => {}) as unknown as T, {
    get(_, key) {
      const found = find();
      // Members are taken at the top of a file, before anything is open.
      if (found === undefined && typeof key === "string" && key !== "then")
        return standIn(() => Reflect.get(get(), key) as object);
      const value: unknown = Reflect.get(get(), key);
      // A method of a class knows its object by its private fields.
      return typeof value === "function" && !Object.hasOwn(get(), key) ? value.bind(get()) : value;
    },
    set: (_, key, value) => Reflect.set(get(), key, value),
    has: (_, key) => Reflect.has(get(), key),
    apply: (_, self, args) => Reflect.apply(get() as () => unknown, self, args),
    ownKeys: () => Reflect.ownKeys(get()),
    getOwnPropertyDescriptor(_, key) {
      const found = Reflect.getOwnPropertyDescriptor(get(), key);
      return found && { ...found, configurable: true };
    },
  });
}
