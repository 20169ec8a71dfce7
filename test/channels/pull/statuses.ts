/** Response statuses for tests of all source kinds, each with whether it counts as a rejection of the request. */
export const STATUSES: readonly (readonly [status: number, isRejection: boolean])[] = [
  [400, true],
  [401, true],
  [403, false],
  [404, false],
  [405, true],
  [408, false],
  [409, false],
  [410, true],
  [415, true],
  [422, true],
  [423, false],
  [429, false],
  [500, false],
  [501, true],
  [503, false],
  [304, false],
];
