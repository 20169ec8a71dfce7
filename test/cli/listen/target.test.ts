import { expect, it } from "vitest";
import { parseTarget } from "../../../src/cli/listen/target.ts";

it.each([
  ["3000", "http://localhost:3000"],
  [":3000", "http://localhost:3000"],
  ["3000/events?a=b", "http://localhost:3000/events?a=b"],
  ["localhost:3000", "http://localhost:3000"],
  ["127.0.0.1:3000/events", "http://127.0.0.1:3000/events"],
  ["[::1]:3000", "http://[::1]:3000"],
  ["http://localhost:3000/events", "http://localhost:3000/events"],
  ["https://dev.example/in", "https://dev.example/in"],
])("the target %s of a listener means %s", (text, url) => {
  expect(parseTarget(text)).toBe(url);
});

it.each([
  "",
  "0",
  "65536",
  "ftp://localhost/x",
  "localhost",
  "events",
])("the target %j of a listener is rejected with an example", (text) => {
  expect(() => parseTarget(text)).toThrow("http://localhost:3000/events");
});
