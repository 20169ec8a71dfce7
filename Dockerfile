# Image without embedded servers. DATABASE_URL, INLET_MASTER_KEY and REDIS_URL are required (see config/compose.yaml).

FROM node:24.21-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

# Builds the console. The final image gets only the built files.
FROM node:24.21-slim AS console
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY config/console ./config/console
COPY src ./src
RUN node config/console/build.ts

FROM node:24.21-slim
ENV NODE_ENV=production \
    INLET_HOST=0.0.0.0 \
    INLET_PORT=8080
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY src ./src
COPY --from=console /app/src/console/dist ./src/console/dist
# The user `nobody` owns no file under /app. The root file system may be read-only.
USER 65534:65534
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s --retries=3 \
    CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.INLET_PORT}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/main.ts"]
