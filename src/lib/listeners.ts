/** A list of listeners. They are called in the order in which they subscribed. */
export interface Listeners<A extends readonly unknown[]> {
  readonly subscribe: (listener: (...args: A) => void) => void;
  readonly notify: (...args: A) => void;
}

export function createListeners<A extends readonly unknown[]>(): Listeners<A> {
  const listeners: ((...args: A) => void)[] = [];
  return {
    subscribe: (listener) => void listeners.push(listener),
    notify(...args) {
      for (const listener of listeners) listener(...args);
    },
  };
}
