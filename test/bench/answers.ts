/** Returns the length of the whole HTTP response at the start of a text. `undefined` while the response is incomplete. */
export function sizeOfAnswer(answer: string): number | undefined {
  const end = answer.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const headers = answer.slice(0, end).toLowerCase();
  const length = /\r\ncontent-length: (\d+)/.exec(headers)?.[1];
  if (length !== undefined) return end + 4 + Number(length);
  const last = answer.indexOf("\r\n0\r\n\r\n", end);
  return last < 0 ? undefined : last + 7;
}
