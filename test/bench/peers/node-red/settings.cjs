/** Node-RED without its editor. Its flow gets the Redis client as one of the modules shared by these settings. */
const { Redis } = require("ioredis");

module.exports = {
  uiHost: "127.0.0.1",
  uiPort: Number(process.env.PEER_PORT),
  httpAdminRoot: false,
  flowFile: `${__dirname}/flows.json`,
  credentialSecret: false,
  logging: { console: { level: "error", metrics: false, audit: false } },
  functionGlobalContext: { redis: new Redis({ path: process.env.PEER_REDIS }) },
};
