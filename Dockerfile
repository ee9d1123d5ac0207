# One image for master, workers, gateway and Azurite. The steps are those of the README, taken by a
# user without rights, who also runs it. Nothing but the names and versions of the locks is installed.

FROM python:3.11.15-slim-bookworm

RUN useradd --create-home --uid 10001 harness \
    && mkdir /harness \
    && chown harness:harness /harness
USER harness
WORKDIR /harness
ENV PATH=/harness/.venv/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1

COPY requirements.txt ./
RUN python -m venv .venv && .venv/bin/pip install -r requirements.txt

COPY LICENSE README.md pyproject.toml setup.py locustfile.py locust_plugins.py ./
COPY harness harness
COPY limits limits
COPY profiles profiles
RUN .venv/bin/pip install --no-deps --no-build-isolation -e . && .venv/bin/harness azurite install

# A new volume takes the owner of the folder that it is mounted at.
RUN mkdir out

CMD ["harness", "--help"]
