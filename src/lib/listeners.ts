/** A list of listeners, which are called in the order of subscription. */
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
