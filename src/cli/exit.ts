/** Exit codes. 128 + the signal's number: cut off by a second signal. */
export const EXIT = { done: 0, failed: 1, wrongSettings: 2, dataDirInUse: 3 } as const;
