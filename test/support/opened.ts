import { afterAll, beforeAll } from "vitest";

/**
 * Opens an object before the first test of a file or a `describe`, and disposes of it after the last test.
 * Several objects are disposed of in reverse order. Returns a proxy for use in tests and hooks, whose
 * members may already be read at module level.
 */
export function opened<T extends object>(open: () => T | Promise<T>): T {
  let current: (T & Partial<AsyncDisposable>) | undefined;
  beforeAll(async () => {
    current = await open();
  });
  afterAll(async () => {
    await current?.[Symbol.asyncDispose]?.();
    // The worker never unloads the module, so the closed object is released here.
    current = undefined;
  });
  return createProxy(() => current);
}

/** Forwards all access to the object once it is open. */
function createProxy<T extends object>(find: () => T | undefined): T {
  const get = (): T => {
    const found = find();
    if (found === undefined) throw new Error("the object is only open in tests and hooks");
    return found;
  };
  return new Proxy((() => {}) as unknown as T, {
    get(_, key) {
      const found = find();
      // A file may read members at module level, before the object is open.
      if (found === undefined && typeof key === "string" && key !== "then")
        return createProxy(() => Reflect.get(get(), key) as object);
      const value: unknown = Reflect.get(get(), key);
      // Binds class methods, because private fields are not reachable through the proxy.
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
