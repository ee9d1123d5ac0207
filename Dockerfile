# One image for runs, workers, gateway and Azurite: the wheel with the pinned packages, run by a user
# without rights on a file system that may be read-only. Nothing but the names and versions of the
# locks is installed.

# The digest is that of the index of all architectures. Dependabot renews tag and digest together.
FROM python:3.11.15-slim-bookworm@sha256:b18992999dbe963a45a8a4da40ac2b1975be1a776d939d098c647482bcad5cba AS python

FROM python AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
WORKDIR /source
COPY requirements.txt ./
RUN python -m venv /harness/.venv && /harness/.venv/bin/pip install -r requirements.txt
COPY LICENSE README.md CHANGELOG.md pyproject.toml setup.py locustfile.py locust_plugins.py ./
COPY harness harness
COPY dashboards dashboards
COPY docs docs
COPY examples examples
COPY limits limits
COPY profiles profiles
RUN /harness/.venv/bin/pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
    && /harness/.venv/bin/pip install --no-deps dist/*.whl \
    && /harness/.venv/bin/harness azurite install

FROM python
LABEL org.opencontainers.image.title="table-stress-harness" \
      org.opencontainers.image.description="Stress-tests Azure Table endpoints with Locust" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="0.1.0"
# A new volume takes the owner of the folder that it is mounted at.
RUN useradd --no-create-home --home-dir /tmp --uid 10001 harness \
    && mkdir -p /harness/out \
    && chown harness:harness /harness/out
COPY --from=build /harness/.venv /harness/.venv
COPY scripts/docker-entrypoint /usr/local/bin/
COPY locustfile.py /harness/
ENV PATH=/harness/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /harness
# By number: Kubernetes then knows that it is not root.
USER 10001
VOLUME /harness/out

# What runs here listens (a run, the gateway, Azurite) or is connected to its master (a worker). In a
# shared network only this container's own connections have a process here.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import psutil, sys; sys.exit(not any(c.pid and c.status in ('LISTEN', 'ESTABLISHED') for c in psutil.net_connections('tcp')))"]

ENTRYPOINT ["docker-entrypoint"]
CMD ["harness", "--help"]
