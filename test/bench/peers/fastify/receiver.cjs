/**
 * Fastify with a response schema: the body as one string, `JSON.parse`, one XADD of that string through ioredis, and 200 after the
 * reply of Redis.
 *
 * usage: node receiver.cjs <folder of the peers' packages> <redis socket>; prints its port.
 */
const { createRequire } = require("node:module");
const { join } = require("node:path");

const [dir, socket] = process.argv.slice(2);
const { fastify } = createRequire(join(dir, "package.json"))("fastify");
const { Redis } = require("ioredis");

const redis = new Redis({ path: socket });
const app = fastify({ logger: false });
app.addContentTypeParser("application/json", { parseAs: "string" }, (_request, text, done) => {
  try {
    done(null, { text, value: JSON.parse(text) });
  } catch (error) {
    done(error);
  }
});
const schema = { response: { 200: { type: "object", properties: { entryId: { type: "string" } } } } };
app.post("/", { schema }, async ({ body }) => ({
  entryId: await redis.xadd("fastify", "MAXLEN", "~", 100_000, "*", "data", body.text),
}));
app.listen({ port: 0, host: "127.0.0.1" }).then(() => process.stdout.write(`${app.server.address().port}\n`));
process.on("SIGTERM", () => process.exit(0));
