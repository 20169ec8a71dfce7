import { randomBytes } from "node:crypto";
import { Writable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { CommandBuffers, SentCommand } from "../../../src/bus/connection/sent-command.ts";
import { createTestRedis } from "../../support/test-redis.ts";

const LONG = 5_000;

/** Texts with characters of one to four bytes, short (joined) and long (written alone), and binary data. */
const ARGUMENTS: readonly (string | Buffer)[] = [
  ...["", "a", "\r\n", "é", "漢", "😀", "\0", "\ud800"].flatMap((text) => [text, text.repeat(LONG)]),
  `${"a".repeat(LONG)}é`,
  `é${"a".repeat(LONG)}`,
  "b".repeat(511),
  "b".repeat(512),
  ...[Buffer.alloc(0), Buffer.from([0xff, 0x0d, 0x0a]), Buffer.alloc(LONG, 0xfe)],
  ...[64, 65, 5_000].map((kib) => randomBytes(kib * 1024)),
  ...["behind large bytes", randomBytes(100_000), randomBytes(100_000)],
];

const bytesOf = (arg: string | Buffer): Buffer => (typeof arg === "string" ? Buffer.from(arg) : arg);

it("a Redis command is sent with each text and binary argument unchanged", async () => {
  await using redis = await createTestRedis();
  const command = new SentCommand("rpush", ["list", ...ARGUMENTS], new CommandBuffers());
  expect(await redis.client.sendCommand(command)).toBe(ARGUMENTS.length);
  expect(await redis.client.lrangeBuffer("list", 0, -1)).toEqual(ARGUMENTS.map(bytesOf));
});

it("the buffer pool does not reuse the buffer of a Redis command that has no reply yet", async () => {
  await using redis = await createTestRedis();
  const buffers = new CommandBuffers();
  const values = Array.from({ length: 40 }, (_, i) => String(i).repeat(i % 2 === 0 ? 100_000 : 10));
  // Sends more commands at once than the pool keeps buffers, and reuses the pooled ones.
  for (const turn of ["first", "second", "third"]) {
    await Promise.all(
      values.map(async (value, i) => {
        const command = new SentCommand("set", [`${turn}-${i}`, `${turn} ${value}`], buffers);
        await redis.client.sendCommand(command);
        command.giveBack();
      }),
    );
  }
  for (const turn of ["first", "second", "third"]) {
    const stored = await redis.client.mget(values.map((_, i) => `${turn}-${i}`));
    expect(stored).toEqual(values.map((value) => `${turn} ${value}`));
  }
});

it("the buffer pool reuses a buffer only after the buffer was returned to the pool", () => {
  const buffers = new CommandBuffers();
  const [first, second] = [buffers.take(100), buffers.take(100)];
  expect(first).not.toBe(second);
  buffers.giveBack(first);
  expect(buffers.take(100)).toBe(first);
});

it("the buffer pool frees a returned buffer that is too large for the pool", () => {
  const buffers = new CommandBuffers();
  const large = buffers.take(5 * 1024 * 1024);
  buffers.giveBack(large);
  expect(large.length).toBe(0);
  expect(buffers.take(100).length).toBeGreaterThanOrEqual(100);
});

it("a Redis command writes large buffers to the socket without copying them", () => {
  const bytes = Buffer.alloc(5 * 1024 * 1024);
  const buffers = new CommandBuffers();
  const kept = buffers.take(100);
  buffers.giveBack(kept);
  const written: Buffer[] = [];
  const socket = new Writable({
    write(chunk, _encoding, done) {
      written.push(chunk);
      done();
    },
  });
  const end = new SentCommand("set", ["key", bytes], buffers).toWritable(socket);
  expect(written[1]).toBe(bytes);
  expect(end.buffer).toBe(kept.buffer);
});

it("a Redis command keeps no reference to its arguments after they are written, so that their memory can be freed", async () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const write = (argument: Buffer) => {
    const command = new SentCommand("set", ["key", argument], new CommandBuffers());
    command.toWritable(new Writable({ write: (_chunk, _encoding, done) => done() }));
    return { command, argument: new WeakRef(argument) };
  };
  const written = write(Buffer.alloc(100));
  // A WeakRef keeps its target alive until the end of the current job.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect([written.argument.deref(), written.command.name]).toEqual([undefined, "set"]);
});
